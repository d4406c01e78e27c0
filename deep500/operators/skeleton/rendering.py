"""The text of a new operator's files, from the templates beside this file."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from deep500.core.counts import check_count
from deep500.core.errors import OperatorError
from deep500.operators.skeleton.names import title_of

__all__ = ["MOST_TENSORS", "Form", "render_skeleton"]

#: In which language the operator is written; those in C++ and CUDA have a form in Python as well, to compare with.
Form: TypeAlias = Literal["python", "cpp", "cuda"]

#: Most inputs, and most outputs, that a skeleton is written for.
MOST_TENSORS = 8

#: For each form: the template of the Python file, of the source, and of the tests; the source's suffix; what the
#: language is called, in texts and within an identifier.
_FORMS: dict[str, tuple[str, str | None, str, str, str, str]] = {
    "python": ("python_operator.py", None, "python_test.py", "", "Python", "python"),
    "cpp": ("native_operator.py", "operator.cpp", "native_test.py", ".cpp", "C++", "cpp"),
    "cuda": ("native_operator.py", "operator.cu", "native_test.py", ".cu", "CUDA", "cuda"),
}

#: Longest line, formula in a sentence, and expression in Python, in characters.
_WIDTH, _LONGEST_FORMULA, _LONGEST_EXPRESSION = 120, 60, 80


def render_skeleton(name: str, form: Form = "cpp", *, inputs: int = 1, outputs: int = 1) -> dict[str, str]:
    r"""Return the files of a new operator: their text by their name.

    The operator is an example that works: :math:`y_k = (k + 1) \cdot \text{factor} \cdot \sum_j x_j^2`.

    Args:
        name: Name of the operator, as :func:`~deep500.operators.skeleton.names.check_skeleton_name` accepts it.
        form: Its language.
        inputs: Number of inputs.
        outputs: Number of outputs.

    Raises:
        OperatorError: A number is not from 1 to 8, or there is no such form.
    """
    if form not in _FORMS:
        raise OperatorError(f"The form of a new operator is {form!r}; accepted are {', '.join(_FORMS)}.")
    for what, count in (("inputs", inputs), ("outputs", outputs)):
        if check_count(f"The number of {what}", count, least=1, error=OperatorError) > MOST_TENSORS:
            raise OperatorError(
                f"The number of {what} was given as {count}; a skeleton is written for at most {MOST_TENSORS}. Write "
                f"it for fewer, and add the others."
            )
    python, source, tests, suffix, language, language_name = _FORMS[form]
    values = {
        "name": name,
        "title": title_of(name),
        "source": f"{name}{suffix}",
        "language": language,
        "language_name": language_name,
        "input_count": str(inputs),
        "output_count": str(outputs),
        **_formulas(_names("x", inputs), _names("y", outputs)),
    }
    files = {f"{name}.py": _rendered(python, values), f"test_{name}.py": _rendered(tests, values)}
    if source is not None:
        files[values["source"]] = _rendered(source, values)
    return dict(sorted(files.items(), key=lambda file: (file[0].startswith("test_"), not file[0].endswith(".py"))))


def _names(letter: str, count: int) -> list[str]:
    return [letter] if count == 1 else [f"{letter}{index}" for index in range(count)]


def _rendered(template: str, values: dict[str, str]) -> str:
    path = Path(__file__).with_name("templates") / f"{template}.tmpl"
    text = string.Template(path.read_text(encoding="utf-8")).substitute(values)
    return text if ".py" in template else "".join(_wrapped(line) for line in text.splitlines(keepends=True))


def _wrapped(line: str) -> str:
    """Break a line of C++ that is too long, behind commas or before the sign of a sum."""
    if len(line.rstrip("\n")) <= _WIDTH:
        return line
    separator, column = (", ", line.index("(") + 1) if ", " in line else (" + ", line.index(" = ") + 3)
    lines, rest = [], line
    while len(rest.rstrip("\n")) > _WIDTH and separator in rest[column:_WIDTH]:
        cut = rest.rindex(separator, column, _WIDTH) + len(separator.rstrip()) * (separator == ", ")
        lines.append(rest[:cut].rstrip())
        rest = " " * column + rest[cut:].lstrip()
    return "\n".join([*lines, rest])


def _formulas(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, str]:
    """Return all that depends on the number of inputs and outputs."""
    squares = " + ".join(f"{x} * {x}" for x in inputs)
    total = squares if len(inputs) == 1 else f"({squares})"
    formula = ", ".join(f"{y} = {_times(k)}factor * {total}" for k, y in enumerate(outputs))
    if len(formula) > _LONGEST_FORMULA:
        formula = "multiples of the sum of the squares of all inputs"
    reads = [f"View<const T> {y}_gradient" for y in outputs] + [f"View<const T> {x}" for x in inputs]
    return {
        "formula": formula,
        "inferred": f"{_repeated('[shapes[0]]', outputs)}, {_repeated('[dtypes[0]]', outputs)}",
        "python_examples": _each("rng.standard_normal(shape).astype(dtype)", inputs),
        "native_examples": _each("rng.standard_normal(shape)", inputs),
        "test_inputs": _each("stream.standard_normal((3, 4))", inputs),
        "empty_inputs": _repeated("[np.zeros((0, 3))]", inputs),
        "empty_outputs": _repeated("[(0, 3)]", outputs),
        "inputs": ", ".join(inputs),
        "first_input": inputs[0],
        "python_forward": _indented(8, _python_forward(inputs, outputs)),
        "python_backward": _indented(8, _python_backward(inputs, outputs)),
        "test_expected": "\n    ".join(_test_expected(inputs, outputs)),
        "cpp_forward_parameters": ", ".join(
            [*(f"View<const T> {x}" for x in inputs), *(f"View<T> {y}" for y in outputs)]
        ),
        "cpp_backward_parameters": ", ".join([*reads, *(f"View<T> {x}_gradient" for x in inputs)]),
        "cpp_requirements": "".join(
            f'        deep500::require({x}.size() == {inputs[0]}.size(), "{x} has ", {x}.size(), " elements, '
            f'{inputs[0]} has ", {inputs[0]}.size());\n'
            for x in inputs[1:]
        ),
        "cpp_forward": _indented(12, _cpp_forward(inputs, outputs)),
        "cpp_backward": _indented(12, _cpp_backward(inputs, outputs)),
        "element_forward": _indented(4, _cpp_forward(inputs, outputs)),
        "element_backward": _indented(4, _cpp_backward(inputs, outputs)),
        "forward_names": ", ".join([*inputs, *outputs]),
        "backward_names": ", ".join([*(f"{y}_gradient" for y in outputs), *inputs, *(f"{x}_gradient" for x in inputs)]),
    }


def _repeated(text: str, tensors: Sequence[str]) -> str:
    return text if len(tensors) == 1 else f"{text} * {len(tensors)}"


def _each(text: str, tensors: Sequence[str]) -> str:
    return f"[{text}]" if len(tensors) == 1 else f"[{text} for _ in range({len(tensors)})]"


def _indented(columns: int, lines: Sequence[str]) -> str:
    return "\n".join(" " * columns + line for line in lines)


def _times(k: int) -> str:
    return f"{k + 1} * " if k else ""


def _python_forward(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    squares = " + ".join(f"{x} * {x}" for x in inputs)
    few = ", ".join(f"{_times(k)}self.factor * total" for k in range(len(outputs)))
    many = f"tuple((k + 1) * self.factor * total for k in range({len(outputs)}))"
    return [f"total = {squares}", f"return {_shorter(few, many)}"]


def _python_backward(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    unpacked = f"({inputs[0]},)" if len(inputs) == 1 else ", ".join(inputs)
    few = " + ".join(f"{_times(k)}grads[{k}]" for k in range(len(outputs)))
    weight = _shorter(few if len(outputs) == 1 else f"({few})", "sum((k + 1) * g for k, g in enumerate(grads))")
    gradients = ", ".join(f"weight * {x}" for x in inputs)
    return [f"{unpacked} = fwd_inputs", f"weight = 2 * self.factor * {weight}", f"return {gradients}"]


def _test_expected(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    few = ", ".join(f"{1.5 * (k + 1)} * total" for k in range(len(outputs)))
    many = f"tuple(1.5 * (k + 1) * total for k in range({len(outputs)}))"
    squares = _shorter(
        " + ".join(f"np.square({x})" for x in inputs), f"sum(np.square(x) for x in ({', '.join(inputs)}))"
    )
    return [f"total = {squares}", f"return {_shorter(few, many)}"]


def _shorter(few: str, many: str) -> str:
    """Return an expression for few tensors, or where that is long, one for many."""
    return few if len(few) <= _LONGEST_EXPRESSION else many


def _cpp_forward(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    squares = " + ".join(f"Real({x}[i]) * Real({x}[i])" for x in inputs)
    first = [f"const Real total = {squares};"]
    return first + [f"{y}[i] = {_times(k)}factor * total;" for k, y in enumerate(outputs)]


def _cpp_backward(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    weight = " + ".join(f"{_times(k)}Real({y}_gradient[i])" for k, y in enumerate(outputs))
    factor = weight if len(outputs) == 1 else f"({weight})"
    first = [f"const Real weight = 2 * factor * {factor};"]
    return first + [f"{x}_gradient[i] = weight * Real({x}[i]);" for x in inputs]
