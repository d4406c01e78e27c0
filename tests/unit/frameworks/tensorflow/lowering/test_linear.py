from __future__ import annotations

from typing import Any

import pytest

from tests.unit.frameworks.tensorflow.support import check_forward, check_gradients, random

GEMM = {
    "plain": ((3, 4), (4, 5), None, {}),
    "bias": ((3, 4), (4, 5), (5,), {}),
    "transposed": ((4, 3), (5, 4), (5,), {"transA": 1, "transB": 1}),
    "scaled": ((3, 4), (5, 4), (3, 1), {"transB": 1, "alpha": 0.5, "beta": -2.0}),
    "scalar": ((3, 4), (4, 5), (), {"beta": 3.0}),
    "one": ((3, 4), (4, 5), (1,), {}),
    "full": ((3, 4), (4, 5), (3, 5), {}),
    "one column": ((3, 4), (4, 1), (1,), {}),
}


@pytest.mark.parametrize("case", GEMM)
def test_gemm(case: str) -> None:
    a, b, c, attributes = GEMM[case]
    arrays = [random(*a), random(*b), *([] if c is None else [random(*c)])]
    check_forward("Gemm", arrays, symbolic=not attributes.get("transA") and c != (3, 1) and c != (3, 5), **attributes)
    check_gradients("Gemm", arrays, **attributes)


MATMUL: list[tuple[Any, Any]] = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((2, 1, 3, 4), (3, 4, 2)),
]


@pytest.mark.parametrize(("a", "b"), MATMUL)
def test_mat_mul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check_forward("MatMul", [random(*a), random(*b)], symbolic=len(a) > 1)
    check_gradients("MatMul", [random(*a), random(*b)])


@pytest.mark.parametrize("mixed", [[0, 1, 2], [0, 1, 0], [0, 0, 0]])
def test_determinants(mixed: list[int]) -> None:
    x = random(2, 3, 3)[:, mixed]
    check_forward("Det", [x])
    check_gradients("Det", [x])
