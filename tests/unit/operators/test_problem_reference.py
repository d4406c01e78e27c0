from __future__ import annotations

import numpy as np
import pytest

from deep500.operators import problem_reference
from deep500.operators.problem_reference import reference_part
from deep500.operators.problems import ConvolutionProblem, GemmProblem, RecurrentProblem

STREAM = np.random.default_rng(0)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_small_product_is_computed_whole(transposed: tuple[bool, bool]) -> None:
    problem = GemmProblem(4, 3, 5, *transposed)
    arrays = {name: STREAM.standard_normal(kind.shape) for name, kind in problem.inputs("float64").items()}
    part = reference_part(problem, arrays)

    a, b = (arrays[name].T if turned else arrays[name] for name, turned in zip("AB", transposed))
    assert part is not None
    assert part.index == slice(None)
    np.testing.assert_array_equal(part.values, a @ b)


def test_of_a_large_product_rows_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = GemmProblem(100, 3, 5, True)
    arrays = {name: STREAM.standard_normal(kind.shape) for name, kind in problem.inputs("float64").items()}
    monkeypatch.setattr(problem_reference, "_MOST_FLOPS", problem.flops / 25)
    part = reference_part(problem, arrays)

    assert part is not None
    assert list(part.index) == [0, 33, 66, 99]  # type: ignore[arg-type]
    np.testing.assert_allclose(part.values, (arrays["A"].T @ arrays["B"])[[0, 33, 66, 99]], rtol=1e-13)
    monkeypatch.setattr(problem_reference, "_MOST_FLOPS", 0.5)
    part = reference_part(problem, arrays)
    assert part is not None
    assert part.values.shape == (1, 3)


def test_of_a_large_convolution_images_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ConvolutionProblem(6, 5, 2, 8, 3, 3, 2, 1, 0, 2, 1)
    arrays = {name: STREAM.standard_normal(kind.shape) for name, kind in problem.inputs("float64").items()}
    whole = reference_part(problem, arrays)
    monkeypatch.setattr(problem_reference, "_MOST_FLOPS", problem.flops / 4)
    part = reference_part(problem, arrays)

    assert whole is not None
    assert part is not None
    assert whole.values.shape == problem.output("float64").shape
    assert part.index == slice(2)
    np.testing.assert_array_equal(part.values, whole.values[:2])
    # One element by hand: image 1, filter 2, row 1, column 0, whose window begins in the padding.
    x, weights = arrays["X"], arrays["W"]
    by_hand = sum(x[1, c, 1 + r, s - 1] * weights[2, c, r, s] for c in range(2) for r in range(2) for s in (1, 2))
    np.testing.assert_allclose(part.values[1, 2, 1, 0], by_hand, rtol=1e-13)


def test_16_bit_values_are_computed_in_float32() -> None:
    problem = GemmProblem(2, 2, 400)
    arrays = {
        name: STREAM.standard_normal(kind.shape).astype(np.float16) for name, kind in problem.inputs("float16").items()
    }
    part = reference_part(problem, arrays)

    assert part is not None
    assert part.values.dtype == np.float32
    np.testing.assert_allclose(part.values, arrays["A"].astype(float) @ arrays["B"].astype(float), rtol=1e-4, atol=1e-4)


def test_recurrent_layers_have_no_reference() -> None:
    assert reference_part(RecurrentProblem(2, 2, 2, "gru"), {}) is None
