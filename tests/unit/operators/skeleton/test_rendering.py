from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.custom import compile_custom_cppop, compile_custom_cppop_inline
from deep500.operators.skeleton.rendering import render_skeleton
from tests.unit.operators.skeleton.support import load

COUNTS = [(1, 1), (3, 2), (8, 8)]


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("python", ["half_square.py", "test_half_square.py"]),
        ("cpp", ["half_square.py", "half_square.cpp", "test_half_square.py"]),
        ("cuda", ["half_square.py", "half_square.cu", "test_half_square.py"]),
    ],
)
@pytest.mark.parametrize(("inputs", "outputs"), COUNTS)
def test_files(form: Any, names: list[str], inputs: int, outputs: int) -> None:
    files = render_skeleton("half_square", form, inputs=inputs, outputs=outputs)

    assert list(files) == names
    for name, text in files.items():
        assert "$" not in text
        assert text.endswith("\n")
        assert max(map(len, text.splitlines())) <= 120
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.parametrize(("inputs", "outputs"), COUNTS)
def test_python_form_computes_what_it_says(tmp_path: Path, inputs: int, outputs: int) -> None:
    op = load(render_skeleton("half_square", "python", inputs=inputs, outputs=outputs), tmp_path).HalfSquare(factor=0.5)
    given = [np.array([1.0, 2.0]) * (index + 1) for index in range(inputs)]
    total = sum(x**2 for x in given)
    found = op.run_forward(given)
    grads = [np.array([1.0, -1.0]) * (k + 2) for k in range(outputs)]

    for k, y in enumerate(found):
        np.testing.assert_allclose(y, 0.5 * (k + 1) * total, rtol=1e-14)
    weight = sum((k + 1) * g for k, g in enumerate(grads))
    for x, gradient in zip(given, op.run_backward(grads, given, found), strict=True):
        np.testing.assert_allclose(gradient, 2 * 0.5 * x * weight, rtol=1e-14)
    assert len(op.example_inputs(np.random.default_rng(0), "float32")) == inputs
    assert op.example_inputs(np.random.default_rng(0), "float32", large=True)[0].dtype == np.float32


def test_both_forms_compute_the_same(tmp_path: Path) -> None:
    module = load(render_skeleton("half_square", "cpp", inputs=2, outputs=2), tmp_path)
    native, reference = module.HalfSquare(factor=0.5), module.HalfSquareReference(factor=0.5)
    given = [np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 2, 6).reshape(2, 3)]
    outputs = native.run_forward(given)

    for y, wanted in zip(outputs, reference.run_forward(given), strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-14)
    for g, wanted in zip(
        native.run_backward(outputs, given, outputs), reference.run_backward(outputs, given, outputs), strict=True
    ):
        np.testing.assert_allclose(g, wanted, rtol=1e-13)
    with pytest.raises(OperatorError, match="x1 has 3 elements, x0 has 6"):
        native(given[0], np.ones(3))


def test_cpp_form_of_many_tensors_compiles() -> None:
    text = render_skeleton("half_square", "cpp", inputs=3, outputs=3)["half_square.cpp"]
    op = compile_custom_cppop_inline("half_square", text)

    assert (op.input_count, op.output_count) == (3, 3)
    assert op.library.description.dtypes == ("float32", "float64", "bfloat16")
    assert op.gradient_needs == (True, False)
    assert [float(y[0]) for y in op(*[np.array([2.0])] * 3)] == [24.0, 48.0, 72.0]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), pytest.param(8, 8, marks=pytest.mark.slow)])
def test_cuda_form_compiles_and_runs_on_the_processor(tmp_path: Path, inputs: int, outputs: int) -> None:
    path = tmp_path / "half_square.cu"
    path.write_text(render_skeleton("half_square", "cuda", inputs=inputs, outputs=outputs)["half_square.cu"])
    op = compile_custom_cppop("half_square", path)
    x = [np.array([1.0, 3.0])] * inputs
    outputs_found = op.run_forward(x)

    assert op.library.description.devices == ("cpu", "cuda")
    np.testing.assert_allclose(outputs_found[0], 2 * inputs * x[0] ** 2)
    (gradient, *_) = op.run_backward([np.ones(2), *[None] * (outputs - 1)], x, outputs_found)
    np.testing.assert_allclose(gradient, 4 * x[0])


@pytest.mark.parametrize("counts", [{"inputs": 0}, {"inputs": 9}, {"outputs": 0}, {"outputs": 9}, {"inputs": 1.5}])
def test_numbers_that_are_refused(counts: Any) -> None:
    with pytest.raises(OperatorError, match=f"The number of {next(iter(counts))} was given as"):
        render_skeleton("half_square", **counts)


def test_forms_that_do_not_exist() -> None:
    with pytest.raises(OperatorError, match="accepted are python, cpp, cuda"):
        render_skeleton("half_square", "fortran")  # type: ignore[arg-type]
