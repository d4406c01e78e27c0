"""Inputs for operators, drawn from templates of shapes, and smaller ones for those in which something fails.

A case is described by a few values from which its inputs follow, so that it can be made again, made smaller, and
written down as Python.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import EXTENDED_DTYPES, TensorDescriptor, numpy_dtype
from deep500.core.texts import shown
from deep500.operators.operator import Array, OptionalArray
from deep500.operators.validation.variants import converted

__all__ = ["Case", "FunctionCase", "TemplateCase", "generated_cases", "smallest"]

#: Sizes that a symbol stands for: 1, small ones, and some that are no multiples of a vector's length.
_SIZES = (1, 2, 3, 4, 5, 7, 8, 17)

#: Ranks of the inputs where nobody says what they are like.
_RANKS = (1, 2, 0, 3, 4)

#: How arrays may lie in memory.
_LAYOUTS = ("contiguous", "fortran", "strided", "reversed")

#: Inputs of more elements are not written down one by one.
_MOST_WRITTEN = 64

#: So many smaller cases are tried.
_MOST_TRIES = 200

#: What a user gives for each input: sizes and names of sizes, or a descriptor with a dtype of its own.
Template = Sequence[int | str] | TensorDescriptor


class Case(abc.ABC):
    """Inputs that can be made again.

    Attributes:
        dtype: The dtype of the inputs that are floats.
    """

    dtype: str

    @abc.abstractmethod
    def inputs(self) -> list[OptionalArray]:
        """Make the inputs."""

    @abc.abstractmethod
    def simpler(self) -> Iterator[Case]:
        """Return simpler cases, the simplest first."""

    @abc.abstractmethod
    def text(self) -> str:
        """Return lines of Python that make the inputs in the same way."""

    def code(self) -> str:
        """Return lines of Python that make ``inputs``: the values themselves, where they are few."""
        arrays = self.inputs()
        if sum(x.size for x in arrays if x is not None) > _MOST_WRITTEN:
            return self.text()
        written = ", ".join(_literal(x, getattr(self, "layout", _LAYOUTS[0])) for x in arrays)
        needs = ["import numpy as np"]
        if "ml_dtypes." in written:
            needs.insert(0, "import ml_dtypes")
        if any(word in written for word in ("nan", "inf")):
            needs.append("from numpy import inf, nan")
        return "\n".join([*needs, f"inputs = [{written}]"])


@dataclass(frozen=True)
class TemplateCase(Case):
    """Inputs whose shapes follow templates.

    Attributes:
        templates: One an input; those without a dtype of their own are of ``dtype``.
        sizes: What the names of sizes stand for.
        dtype: The dtype.
        seed: Seeds of the values.
        layout: How the arrays lie in memory: ``"contiguous"``, ``"fortran"`` (columns first), ``"strided"`` (every
            second element along the last dimension) or ``"reversed"`` (backwards along the first).
        values: ``"normal"`` (mean 0, deviation 1), ``"rounded"`` (the same with one decimal place), ``"ones"``, or
            ``"special"`` (with NaN, infinities, -0.0, the smallest and very large numbers among them).
        is_free: Whether the rank is not given, but drawn.
    """

    templates: tuple[tuple[int | str, ...] | TensorDescriptor, ...]
    sizes: Mapping[str, int]
    dtype: str = "float32"
    seed: tuple[int, ...] = (0,)
    layout: str = "contiguous"
    values: str = "normal"
    is_free: bool = False

    def inputs(self) -> list[OptionalArray]:
        """Make the inputs."""
        stream = np.random.default_rng(self.seed)
        made: list[OptionalArray] = []
        for template in self.templates:
            described = isinstance(template, TensorDescriptor)
            sizes = (template.shape or ()) if isinstance(template, TensorDescriptor) else template
            shape = tuple(self.sizes[size] if isinstance(size, str) else int(size or 0) for size in sizes)
            dtype = template.dtype if described and isinstance(template, TensorDescriptor) else self.dtype
            made.append(_laid_out(_drawn(stream, shape, dtype, self.values), self.layout))
        return made

    def simpler(self) -> Iterator[Case]:
        """Return cases of a lower rank, smaller sizes, and plainer layouts and values."""
        if self.layout != _LAYOUTS[0]:
            yield replace(self, layout=_LAYOUTS[0])
        if self.is_free and self.templates and self.templates[0]:
            sizes = list(self.sizes.values())
            for lower in range(len(sizes)):
                names = tuple(f"d{k}" for k in range(lower))
                for kept in (sizes[:lower], sizes[len(sizes) - lower :]):
                    yield replace(self, templates=(names,) * len(self.templates), sizes=dict(zip(names, kept)))
        for name, size in self.sizes.items():
            for smaller in range(size):
                yield replace(self, sizes={**self.sizes, name: smaller})
        plainer = {"special": ("ones", "rounded", "normal"), "normal": ("ones", "rounded"), "rounded": ("ones",)}
        for values in plainer.get(self.values, ()):
            yield replace(self, values=values)

    def text(self) -> str:
        """Return lines of Python that make the inputs in the same way."""
        described = any(isinstance(template, TensorDescriptor) for template in self.templates)
        needs = ["from deep500.core.tensor_descriptor import TensorDescriptor"] if described else []
        needs.append("from deep500.operators.validation.generate import TemplateCase")
        return "\n".join([*needs, f"inputs = {self!r}.inputs()"])


@dataclass(frozen=True)
class FunctionCase(Case):
    """Inputs that a user's function draws.

    Attributes:
        make: ``make(rng)`` returns the inputs; those of float64 become ``dtype``.
        dtype: The dtype.
        seed: Seeds of the generator.
    """

    make: Callable[[np.random.Generator], Sequence[Any]]
    dtype: str = "float32"
    seed: tuple[int, ...] = (0,)

    def inputs(self) -> list[OptionalArray]:
        """Make the inputs.

        Raises:
            OperatorError: The function returns no list.
        """
        made = self.make(np.random.default_rng(self.seed))
        if not isinstance(made, (list, tuple)):
            raise OperatorError(f"cases(rng) returned {shown(made)}; accepted is a list with one array an input.")
        arrays = [None if x is None else np.asarray(x) for x in made]
        doubles = [x if x is not None and x.dtype == np.float64 else None for x in arrays]
        return [x if d is None else d for x, d in zip(arrays, converted(doubles, self.dtype))]

    def simpler(self) -> Iterator[Case]:
        """Return nothing: only the function knows what its inputs have to be like."""
        return iter(())

    def text(self) -> str:
        """Return lines of Python that make the inputs in the same way."""
        name = getattr(self.make, "__name__", "cases")
        return "\n".join(
            ["import numpy as np", f"inputs = {name}(np.random.default_rng({self.seed}))  # float64 as {self.dtype}"]
        )


def generated_cases(
    cases: Callable[[np.random.Generator], Sequence[Any]] | None,
    shapes: Sequence[Template] | None,
    input_count: int | None,
    dtypes: Sequence[Any],
    examples: int,
    seed: int,
    *,
    special_values: bool = False,
) -> Iterator[Case]:
    """Return cases, those of every dtype in turn; the first ones have the smallest sizes, sizes of 1 and of 0.

    Args:
        cases: Draws the inputs; instead of templates.
        shapes: A template for each input.
        input_count: Number of inputs where there is no template: then all have one shape, of ranks from 0 to 4.
        dtypes: Dtypes of floats.
        examples: Number of cases.
        seed: Seed of all that is drawn.
        special_values: Whether some have NaN, infinities, -0.0, and the smallest and very large numbers.

    Raises:
        OperatorError: A template is none, or there is nothing to tell the number of inputs from.
    """
    names = [numpy_dtype(dtype).name for dtype in dtypes]
    if not names:
        raise OperatorError("No dtypes were given; accepted are names such as 'float32'.")
    if cases is None and shapes is None and input_count is None:
        raise OperatorError(
            "Nothing says how many inputs the operators have. Give the shapes, such as shapes=[('n', 'c', 8, 8)], or "
            "cases=, a function of a NumPy generator that returns inputs."
        )
    templates = None if shapes is None else tuple(_template(template) for template in shapes)
    for number in range(examples):
        dtype, turn, seeds = names[number % len(names)], number // len(names), (seed, number)
        if cases is not None:
            yield FunctionCase(cases, dtype, seeds)
            continue
        stream = np.random.default_rng((seed, number, 1))
        is_free = templates is None
        if templates is None:
            rank = _RANKS[turn % len(_RANKS)]
            chosen: tuple[Any, ...] = (tuple(f"d{k}" for k in range(rank)),) * (input_count or 0)
        else:
            chosen = templates
        sizes = _sizes(_symbols(chosen), turn // (len(_RANKS) if is_free else 1), stream)
        layout = _LAYOUTS[0] if turn % 2 == 0 else str(stream.choice(_LAYOUTS[1:]))
        values = "special" if special_values and turn % 3 == 2 else "normal"
        yield TemplateCase(chosen, sizes, dtype, seeds, layout, values, is_free)


def smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return the simplest case that still fails, going from one to a simpler one as long as there is one.

    Args:
        case: One that fails.
        fails: Whether a case fails.
    """
    tries = 0
    while True:
        for simpler in case.simpler():
            tries += 1
            if tries > _MOST_TRIES:
                return case
            if fails(simpler):
                case = simpler
                break
        else:
            return case


def _template(template: Any) -> tuple[int | str, ...] | TensorDescriptor:
    """Return a template, checked."""
    if isinstance(template, TensorDescriptor):
        sizes: Any = template.shape
    else:
        sizes = template
    is_listed = isinstance(sizes, (tuple, list))
    if is_listed and all(isinstance(size, str) or (isinstance(size, int) and size >= 0) for size in sizes):
        return template if isinstance(template, TensorDescriptor) else tuple(sizes)
    raise OperatorError(
        f"The shape of an input was given as {shown(template)}; accepted are tuples of sizes and names of sizes, such "
        f"as ('n', 3), and descriptors, such as tensordesc('int64', 'n')."
    )


def _symbols(templates: Sequence[Any]) -> list[str]:
    listed = [(t.shape or ()) if isinstance(t, TensorDescriptor) else t for t in templates]
    return list(dict.fromkeys(size for sizes in listed for size in sizes if isinstance(size, str)))


def _sizes(names: Sequence[str], turn: int, stream: np.random.Generator) -> dict[str, int]:
    """Return sizes: first 2, 3, ..., then all 1, then 0 for each in turn, then any."""
    if turn == 0:
        return {name: 2 + k for k, name in enumerate(names)}
    if turn == 1:
        return dict.fromkeys(names, 1)
    drawn = {name: int(stream.choice(_SIZES)) for name in names}
    if turn - 2 < len(names):
        drawn[names[turn - 2]] = 0
    return drawn


def _drawn(stream: np.random.Generator, shape: tuple[int, ...], dtype: str, values: str) -> Array:
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return np.asarray(stream.random(shape) < 0.5)
    if kind.kind in "iu":
        return np.asarray(stream.integers(0, 4, shape)).astype(kind)
    made = np.ones(shape) if values == "ones" else np.asarray(stream.standard_normal(shape))
    if values == "rounded":
        made = np.asarray(np.round(made, 1))
    found = made.astype(kind)
    if values == "special" and found.size:
        limits = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        least, most = float(limits.smallest_subnormal), float(limits.max)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, least, -least, most, -most, most / 4])
        places = stream.random(found.shape) < 0.3
        found = np.where(places, stream.choice(special, found.shape).astype(kind), found)
    return found


def _laid_out(array: Array, layout: str) -> Array:
    """Return the same values, lying in memory in another way."""
    if array.ndim == 0 or layout == "contiguous":
        return array
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    return np.flip(np.flip(array, 0).copy(), 0)


def _literal(array: OptionalArray, layout: str) -> str:
    """Return an array as Python."""
    if array is None:
        return "None"
    name = array.dtype.name
    dtype = f"ml_dtypes.{name}" if name in EXTENDED_DTYPES else repr(name)
    if array.size == 0:
        return f"np.zeros({array.shape}, {dtype})"
    plain = array.astype(np.float64) if name in EXTENDED_DTYPES else array
    text = f"np.array({plain.tolist()!r}, {dtype})"
    if array.ndim == 0 or layout == "contiguous":
        return text
    if layout == "fortran":
        return f"np.asfortranarray({text})"
    if layout == "strided":
        return f"np.repeat({text}, 2, axis=-1)[..., ::2]"
    return f"np.flip(np.flip({text}, 0).copy(), 0)"
