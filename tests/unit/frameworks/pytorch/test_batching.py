"""Operators under the transforms of ``torch.func``."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import OperatorError  # noqa: E402
from deep500.frameworks.pytorch import custom_op  # noqa: E402
from deep500.operators.custom import CustomPythonOp  # noqa: E402
from tests.unit.frameworks.pytorch import support  # noqa: E402


class Weighted(CustomPythonOp):
    """Two outputs of two inputs: the product, and its sums over the last dimension."""

    input_count = 2
    output_count = 2

    def forward(self, x: Any, w: Any) -> Any:
        return x * w, (x * w).sum(-1)


def random(*shape: int) -> Any:
    return torch.rand(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_native_operators() -> None:
    function, x = custom_op(support.ipow()), random(3, 4)

    torch.testing.assert_close(torch.func.grad(lambda a: function(a).sum())(x), 3 * x**2)
    torch.testing.assert_close(torch.func.vmap(function, in_dims=1)(x), (x**3).T)
    by_row = torch.func.vmap(torch.func.grad(lambda a: function(a).sum()))
    torch.testing.assert_close(by_row(x), 3 * x**2)
    hessian = torch.func.jacrev(torch.func.grad(lambda a: function(a).sum()))(x[0])
    torch.testing.assert_close(hessian, torch.diag(6 * x[0]))


def test_operators_in_python() -> None:
    x, w = random(3, 4), random(4)

    products, sums = torch.func.vmap(custom_op(Weighted()), in_dims=(0, None))(x, w)
    columns, _ = torch.func.vmap(custom_op(Weighted()), in_dims=(1, 0))(x, w)

    torch.testing.assert_close(products, x * w)
    torch.testing.assert_close(sums, (x * w).sum(1))
    torch.testing.assert_close(columns, (x * w).T)


def test_a_batch_of_nothing_is_refused() -> None:
    for op in (Weighted(), support.ipow()):
        arguments = [random(0, 3)] * op.input_count
        with pytest.raises(OperatorError, match=f"{op.name} cannot be batched by torch.vmap over no entries"):
            torch.func.vmap(custom_op(op))(*arguments)
