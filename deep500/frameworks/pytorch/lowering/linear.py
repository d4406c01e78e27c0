"""Matrix products and what follows from them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import recorded
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._integers import narrowed, wider
from deep500.frameworks.pytorch.lowering._kinds import input_type, is_integer, lacks_kernels
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Gemm", since=11)
def gemm(node: OperatorNode, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    """``alpha A' B' + beta C`` with ``A'`` ``[M, K]``, ``B'`` ``[K, N]``, C broadcast to ``[M, N]``.

    Of integers, both terms are rounded towards zero where their factor is not 1.

    Source: ONNX Gemm-13.
    """
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    if beta == 0.0:  # C does not count, not even its NaN
        c = None
    a = a.t() if node.attributes.get("transA", 0) else a
    transposed = bool(node.attributes.get("transB", 0))
    if is_integer(node):
        return _integer_gemm(a, b.t() if transposed else b, c, alpha, beta)
    descriptor = node.input_types[2] if c is not None and len(node.input_types) > 2 else None
    is_vector = c is None or (descriptor is not None and descriptor.rank == 1 and descriptor.shape == _columns(node))
    if alpha == 1.0 and (c is None or beta == 1.0) and transposed and is_vector:
        return F.linear(a, b, c)
    product = torch.matmul(a, b.t() if transposed else b)
    if alpha != 1.0:
        product = product * alpha
    if c is None:
        return product
    return product + (c if beta == 1.0 else c * beta)


@recorded
def _integer_gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float) -> torch.Tensor:
    product = _scaled(torch.matmul(wider(a), wider(b)), alpha)
    return narrowed(product if c is None else product + _scaled(wider(c), beta), a.dtype)


def _scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    """Multiply integers by a number, in integers where it is whole."""
    return x * int(factor) if factor == int(factor) else (x.to(torch.float64) * factor).to(x.dtype)


def _columns(node: OperatorNode) -> tuple[object, ...] | None:
    """Return the shape ``[N]`` of a full bias, ``None`` when N is not known."""
    descriptor = node.input_types[1]
    if descriptor is None or descriptor.shape is None:
        return None
    columns = descriptor.shape[0 if node.attributes.get("transB", 0) else 1]
    return (columns,) if isinstance(columns, int) else None


@recorded
def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return narrowed(torch.matmul(wider(a), wider(b)), a.dtype)


@lowerings.register("MatMul", since=1)
def matmul(node: OperatorNode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Matrix product with NumPy's rules for vectors and batches.

    Source: ONNX MatMul-13.
    """
    return _matmul(a, b) if lacks_kernels(node) else torch.matmul(a, b)


@recorded
def _einsum(equation: str, *tensors: torch.Tensor) -> torch.Tensor:
    # PyTorch sums integers in int64, and gives a view where nothing is to be summed.
    return narrowed(torch.einsum(equation, *(wider(x) for x in tensors)), tensors[0].dtype).clone()


@lowerings.register("Einsum", since=12)
def einsum(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Sum of products over the indices that an equation names.

    Source: ONNX Einsum-28.
    """
    equation = node.attributes["equation"].replace(" ", "")
    if is_integer(node) or lacks_kernels(node):
        return _einsum(equation, *tensors)
    # Of a single operand, the result may be a view.
    result = torch.einsum(equation, *tensors)
    return torch.clone(result) if len(tensors) == 1 else result


def _determinant(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.linalg.det(x)
    return result


@lowerings.register("Det", since=11)
def det(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Determinant of the matrices in the last two axes.

    Source: ONNX Det-22.
    """
    if input_type(node) in ("float16", "bfloat16"):  # PyTorch factorises no matrices of 16-bit floats
        return _determinant(x.to(torch.float32)).type_as(x)
    return _determinant(x)
