"""Quantisation, and products of quantised tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from deep500.frameworks.pytorch._dtypes import dtype_name, torch_dtype
from deep500.frameworks.pytorch._recording import recorded, spread
from deep500.frameworks.pytorch.lowering import _quantizing as quantizing
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._casting import values
from deep500.frameworks.pytorch.lowering._kinds import input_type, onnx_type, output_type
from deep500.frameworks.pytorch.lowering.convolution import conv
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@recorded
def _quantize(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor | None,
    types: tuple[str, str, str],
    layout: tuple[int, int],
    saturate: bool,
) -> torch.Tensor:
    """Quantise; ``types`` are those of the zero point, of the division and of the result."""
    zero_type, precision, target = types
    divided_in = torch_dtype(precision)
    scale = quantizing.spread_parameter(scale, x, *layout)
    scaled = x.to(divided_in) / values(scale, None).to(divided_in)
    if zero_point is not None:
        zero_point = quantizing.exact(quantizing.spread_parameter(zero_point, x, *layout), zero_type)
    return quantizing.quantized(scaled, zero_point, target, saturate)


@lowerings.register("QuantizeLinear", since=10)
def quantize_linear(
    node: OperatorNode, x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor | None = None
) -> torch.Tensor:
    """``saturate(round(x / scale) + zero_point)``, with one scale, one an index of an axis, or one a block.

    Source: ONNX QuantizeLinear-28.
    """
    given = node.attributes.get("output_dtype", 0)
    target = onnx_type(given) if given else input_type(node, 2) or output_type(node) or "uint8"
    asked = node.attributes.get("precision", 0)
    precision = onnx_type(asked) if asked else input_type(node, 1) or "float32"
    if precision in ("int32", "float8_e8m0fnu"):  # nothing divides in these
        precision = "float64" if precision == "int32" else "float32"
    layout = (node.attributes.get("axis", 1), node.attributes.get("block_size", 0))
    types = (input_type(node, 2) or target, precision, target)
    return _quantize(x, scale, zero_point, types, layout, bool(node.attributes.get("saturate", 1)))


@recorded
def _dequantize(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor | None, name: str | None, layout: tuple[int, int]
) -> torch.Tensor:
    scale = quantizing.spread_parameter(scale, x, *layout)
    if zero_point is not None:
        zero_point = quantizing.exact(quantizing.spread_parameter(zero_point, x, *layout), name)
    return quantizing.dequantized(x, name, scale, zero_point)


@lowerings.register("DequantizeLinear", since=10)
def dequantize_linear(
    node: OperatorNode, x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor | None = None
) -> torch.Tensor:
    """``(x - zero_point) scale``, with one scale, one an index of an axis, or one a block.

    Source: ONNX DequantizeLinear-28.
    """
    given = node.attributes.get("output_dtype", 0)
    target = onnx_type(given) if given else input_type(node, 1) or output_type(node) or "float32"
    layout = (node.attributes.get("axis", 1), node.attributes.get("block_size", 0))
    return _dequantize(x, scale, zero_point, input_type(node), layout).to(torch_dtype(target))


@recorded
def _dynamically_quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    with_zero = torch.cat([x.reshape(-1), x.new_zeros(1)])
    least, most = with_zero.min(), with_zero.max()
    span = torch.where(most == least, 1.0, most - least)
    scale = span / 255.0
    zero_point = torch.round(torch.clamp(-least / scale, 0.0, 255.0))
    y = quantizing.quantized(x / scale, zero_point.to(torch.float64), "uint8")
    return y, scale, zero_point.to(torch.uint8)


@lowerings.register("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: OperatorNode, x: torch.Tensor) -> tuple[Any, ...]:
    """Quantisation to uint8 by the range of the input, 0 included: the result, its scale and its zero point.

    Source: ONNX DynamicQuantizeLinear-11.
    """
    return spread(_dynamically_quantized(x), 3)


def _by_row(parameter: torch.Tensor | None) -> torch.Tensor | None:
    """Return a number, a vector with one a row, or a tensor that broadcasts already, as what broadcasts."""
    if parameter is None or parameter.dim() != 1:
        return parameter
    return parameter.reshape(()) if parameter.numel() == 1 else parameter.unsqueeze(-1)


def _moved(x: torch.Tensor, zero_point: torch.Tensor | None, name: str | None) -> torch.Tensor:
    """Return ``x - zero_point`` as float64: there, products of integers of 8 bits are exact, and fast."""
    numbers = quantizing.exact(x, name)
    return numbers if zero_point is None else numbers - quantizing.exact(zero_point, name)


def _as_int32(x: torch.Tensor) -> torch.Tensor:
    """Return sums of products as int32, beyond which they wrap around."""
    return x.to(torch.int64).to(torch.int32)


@recorded
def _integer_product(
    a: torch.Tensor, b: torch.Tensor, zero_a: torch.Tensor | None, zero_b: torch.Tensor | None
) -> torch.Tensor:
    return _as_int32(torch.matmul(_moved(a, _by_row(zero_a), None), _moved(b, zero_b, None)))


@lowerings.register("MatMulInteger", since=10)
def matmul_integer(
    node: OperatorNode, a: torch.Tensor, b: torch.Tensor, zero_a: Any = None, zero_b: Any = None
) -> torch.Tensor:
    """Product of matrices of 8-bit integers as int32, less their zero points: of A one a row, of B one a column.

    Source: ONNX MatMulInteger-10.
    """
    return _integer_product(a, b, zero_a, zero_b)


@recorded
def _quantized_product(tensors: Sequence[torch.Tensor], types: tuple[str | None, ...], target: str) -> torch.Tensor:
    a, scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y = tensors
    product = torch.matmul(_moved(a, _by_row(zero_a), types[0]), _moved(b, zero_b, types[3]))
    scale_a, scale_y = _by_row(scale_a), _by_row(scale_y)  # type: ignore[assignment]
    factor = scale_a * (scale_b.reshape(()) if scale_b.numel() == 1 else scale_b) / scale_y
    zero = _by_row(zero_y)
    return quantizing.quantized(
        product * factor.to(torch.float64), None if zero is None else quantizing.exact(zero, types[7]), target
    )


@lowerings.register("QLinearMatMul", since=10)
def q_linear_matmul(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Product of quantised matrices, quantised again.

    Source: ONNX QLinearMatMul-21.
    """
    types = tuple(input_type(node, index) for index in range(8))
    return _quantized_product(list(tensors), types, types[7] or output_type(node) or "uint8")


@recorded
def _centred(x: torch.Tensor, zero_point: torch.Tensor | None, by_channel: bool) -> torch.Tensor:
    """Return ``x - zero_point`` as float64; of weights, the zero point may be one an output channel."""
    if zero_point is not None and by_channel:
        zero_point = _by_channel(zero_point, 0, x.dim())
    elif zero_point is not None:
        zero_point = zero_point.reshape(())
    return _moved(x, zero_point, None)


def _by_channel(parameter: torch.Tensor, axis: int, rank: int) -> torch.Tensor:
    """Return a number, or a vector along an axis, as what broadcasts to a rank."""
    if parameter.numel() == 1:
        return parameter.reshape(())
    return parameter.reshape([-1 if index == axis else 1 for index in range(rank)])


def _convolved(node: OperatorNode, weight: int, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Convolve what is float64 now as the node asks; ``weight`` is the input that was its weights."""
    plain = dataclasses.replace(
        node,
        op_type="Conv",
        inputs=(node.inputs[0], node.inputs[weight]),
        input_types=(node.input_types[0], node.input_types[weight]),
        constants={},
    )
    return conv(plain, x, w)


@lowerings.register("ConvInteger", since=10)
def conv_integer(
    node: OperatorNode, x: torch.Tensor, w: torch.Tensor, zero_x: Any = None, zero_w: Any = None
) -> torch.Tensor:
    """Convolution of 8-bit integers as int32, less their zero points, of which the weights have one or one a channel.

    Source: ONNX ConvInteger-10.
    """
    product = _convolved(node, 1, _centred(x, zero_x, False), _centred(w, zero_w, True))
    return product.to(torch.int64).to(torch.int32)


@recorded
def _requantized(
    product: torch.Tensor,
    bias: torch.Tensor | None,
    scales: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    zero_point: torch.Tensor | None,
) -> torch.Tensor:
    if bias is not None:
        product = product + _by_channel(bias, 1, product.dim())
    scale_x, scale_w, scale_y = scales
    factor = scale_x.reshape(()) * _by_channel(scale_w, 1, product.dim()) / scale_y.reshape(())
    target = "uint8" if zero_point is None else dtype_name(zero_point.dtype)
    zero = None if zero_point is None else quantizing.exact(zero_point.reshape(()), None)
    return quantizing.quantized(product * factor.to(torch.float64), zero, target)


@lowerings.register("QLinearConv", since=10)
def q_linear_conv(node: OperatorNode, *tensors: torch.Tensor) -> torch.Tensor:
    """Convolution of quantised tensors, quantised again.

    Source: ONNX QLinearConv-10.
    """
    x, scale_x, zero_x, w, scale_w, zero_w, scale_y, zero_y, *rest = tensors
    product = _convolved(node, 3, _centred(x, zero_x, False), _centred(w, zero_w, True))
    return _requantized(product, rest[0] if rest else None, (scale_x, scale_w, scale_y), zero_y)
