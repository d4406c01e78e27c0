"""Matrix products."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Gemm", since=11)
def gemm(node: OperatorNode, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    """``alpha A' B' + beta C`` with ``A'`` ``[M, K]``, ``B'`` ``[K, N]``, C broadcast to ``[M, N]``."""
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    kind = node.input_types[0]
    if kind is not None and kind.numpy_dtype.kind in "iu" and (alpha % 1 or beta % 1):
        raise UnsupportedOperatorError(
            f"{node.label} scales integers by {alpha:g} and {beta:g}; the PyTorch adapter takes whole factors only."
        )
    if beta == 0.0:  # C does not count, not even its NaN
        c = None
    a = a.t() if node.attributes.get("transA", 0) else a
    transposed = bool(node.attributes.get("transB", 0))
    descriptor = node.input_types[2] if c is not None and len(node.input_types) > 2 else None
    is_vector = c is None or (descriptor is not None and descriptor.rank == 1 and descriptor.shape == _columns(node))
    if alpha == 1.0 and (c is None or beta == 1.0) and transposed and is_vector:
        return F.linear(a, b, c)
    b = b.t() if transposed else b
    product = torch.matmul(a, b)
    whole = kind is not None and kind.numpy_dtype.kind in "iu"
    if alpha != 1.0:
        product = product * (int(alpha) if whole else alpha)
    if c is None:
        return product
    return product + (c if beta == 1.0 else c * (int(beta) if whole else beta))


def _columns(node: OperatorNode) -> tuple[object, ...] | None:
    """Return the shape ``[N]`` of a full bias, ``None`` when N is not known."""
    descriptor = node.input_types[1]
    if descriptor is None or descriptor.shape is None:
        return None
    columns = descriptor.shape[0 if node.attributes.get("transB", 0) else 1]
    return (columns,) if isinstance(columns, int) else None


@lowerings.register("MatMul", since=1)
def matmul(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Matrix product with NumPy's rules for vectors and batches."""
    return torch.matmul(a, b)
