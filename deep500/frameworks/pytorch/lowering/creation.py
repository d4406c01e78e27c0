"""Tensors out of nothing: constants, ranges, random numbers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import torch

from deep500.core.errors import InvalidInputError, InvalidNetworkError
from deep500.frameworks.pytorch._arrays import as_texts, to_tensor
from deep500.frameworks.pytorch._dtypes import torch_dtype
from deep500.frameworks.pytorch._recording import call_each_run, call_module, recorded
from deep500.frameworks.pytorch._sizes import as_integers, integers_of
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._kinds import input_type, onnx_type
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Constant", since=1)
def constant(node: OperatorNode) -> Any:
    """A tensor that stands in the node: as such, as numbers or texts, or as a few elements among zeros.

    Source: ONNX Constant-25.
    """
    for name in ("value_float", "value_floats"):
        if name in node.attributes:
            return to_tensor(np.array(node.attributes[name], np.float32))
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            return to_tensor(np.array(node.attributes[name], np.int64))
    for name in ("value_string", "value_strings"):
        if name in node.attributes:
            return call_each_run(_Text(as_texts(np.array(node.attributes[name], object))))
    if "value" in node.attributes:
        texts = as_texts(np.asarray(node.attributes["value"]))
        return to_tensor(np.array(node.attributes["value"])) if texts is None else call_each_run(_Text(texts))
    raise InvalidNetworkError(
        f"{node.label} holds {', '.join(node.attributes) or 'nothing'}; accepted are value, value_float, value_floats, "
        f"value_int, value_ints, value_string and value_strings."
    )


class _Text(torch.nn.Module):
    """An array of texts."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def forward(self) -> Any:
        return self.value


class _Filled(torch.nn.Module):
    """A tensor of a shape, all of whose elements are one value."""

    value: torch.Tensor

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("value", value.reshape(()), persistent=False)

    def forward(self, shape: Any) -> torch.Tensor:
        return self.value.expand(as_integers(shape)).clone()


@lowerings.register("ConstantOfShape", since=9)
def constant_of_shape(node: OperatorNode, shape: torch.Tensor) -> torch.Tensor:
    """A tensor of a shape, filled with one value, by default 0.

    Source: ONNX ConstantOfShape-25.
    """
    value = node.attributes.get("value")
    filled = _Filled(torch.zeros(()) if value is None else to_tensor(np.array(value)))
    result: torch.Tensor = call_module(filled, (integers_of(node, 0, shape),))
    return result


@recorded
def _range(start: torch.Tensor, limit: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    start, limit, delta = start.reshape(()), limit.reshape(()), delta.reshape(())
    dtype, step = start.dtype, delta.item()
    if step == 0:
        raise InvalidInputError("Range was given delta 0; accepted are other numbers.")
    # In Python's numbers: integers of any size, and floats of 64 bits, which hold all others exactly.
    count = limit.item() - start.item()
    count = math.ceil(count / step) if dtype.is_floating_point else -(-count // step)
    steps = torch.arange(max(int(count), 0), device=start.device)
    if dtype in (torch.float16, torch.bfloat16):
        return (start.to(torch.float32) + steps * delta.to(torch.float32)).to(dtype)
    return start + steps.to(dtype) * delta


@lowerings.register("Range", since=11)
def number_range(node: OperatorNode, start: torch.Tensor, limit: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """Numbers from a start on, in steps, up to a limit that is not reached.

    Source: ONNX Range-27.
    """
    given = (start, limit, delta)
    if all(index in node.constants for index in range(3)):
        given = (to_tensor(node.constants[0]), to_tensor(node.constants[1]), to_tensor(node.constants[2]))
    return _range(*given)


@recorded
def _eye_like(x: torch.Tensor, offset: int, dtype: torch.dtype | None) -> torch.Tensor:
    rows = torch.arange(x.size(0), device=x.device)
    columns = torch.arange(x.size(1), device=x.device)
    return (rows.unsqueeze(1) + offset == columns).to(x.dtype if dtype is None else dtype)


@lowerings.register("EyeLike", since=9)
def eye_like(node: OperatorNode, x: torch.Tensor) -> torch.Tensor:
    """Ones on a diagonal of a matrix shaped like another, zeros elsewhere.

    Source: ONNX EyeLike-22.
    """
    code = node.attributes.get("dtype", 0)
    return _eye_like(x, node.attributes.get("k", 0), torch_dtype(onnx_type(code)) if code else None)


class _Random(torch.nn.Module):
    """Draws numbers: every time the same ones where the node has a seed, else from PyTorch's own stream."""

    def __init__(self, node: OperatorNode) -> None:
        super().__init__()
        self.attributes = dict(node.attributes)
        seed = node.attributes.get("seed")
        # ONNX' seed is a float, whose bits tell all seeds apart.
        self.seed = None if seed is None else int.from_bytes(struct.pack("<f", seed), "little")
        self.register_buffer("place", torch.empty(0), persistent=False)

    def generator(self, device: torch.device) -> torch.Generator | None:
        """Return the stream that the seed begins, ``None`` for PyTorch's own."""
        return None if self.seed is None else torch.Generator(device).manual_seed(self.seed)

    def shape_and_place(self, like: Any) -> tuple[list[int], torch.device]:
        """Return the shape of what is drawn, which another tensor may give, and the device."""
        place = self.place.device if not isinstance(like, torch.Tensor) else like.device
        assert isinstance(place, torch.device)
        return list(self.attributes["shape"] if like is None else like.shape), place


class _RandomNumbers(_Random):
    """Draws from a normal or a uniform distribution."""

    def __init__(self, node: OperatorNode, dtype: torch.dtype, *, is_normal: bool) -> None:
        super().__init__(node)
        self.dtype, self.is_normal = dtype, is_normal

    def forward(self, like: Any = None) -> torch.Tensor:
        shape, device = self.shape_and_place(like)
        generator = self.generator(device)
        # Drawn in no fewer than 32 bits: of 16, uniform numbers would have few values, and the limit among them.
        dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        if self.is_normal:
            drawn = torch.randn(shape, generator=generator, device=device, dtype=dtype)
            drawn = drawn * self.attributes.get("scale", 1.0) + self.attributes.get("mean", 0.0)
        else:
            low, high = self.attributes.get("low", 0.0), self.attributes.get("high", 1.0)
            drawn = torch.rand(shape, generator=generator, device=device, dtype=dtype) * (high - low) + low
        result: torch.Tensor = drawn.to(self.dtype)
        return result


class _Coins(_Random):
    """Draws 1 with the probability that a tensor gives, else 0."""

    def forward(self, probability: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        drawn_in = torch.float64 if probability.dtype == torch.float64 else torch.float32
        device = probability.device
        drawn = torch.rand(probability.shape, generator=self.generator(device), device=device, dtype=drawn_in)
        return (drawn < probability).to(dtype)


class _Categories(_Random):
    """Draws classes, each row by its logarithmic probabilities, which need not be normalised."""

    def forward(self, logarithms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        wide = logarithms if logarithms.dtype == torch.float64 else logarithms.to(torch.float32)
        generator, count = self.generator(logarithms.device), self.attributes.get("sample_size", 1)
        probabilities = torch.softmax(wide, -1)
        return torch.multinomial(probabilities, count, replacement=True, generator=generator).to(dtype)


def _drawn_dtype(node: OperatorNode, default: str) -> torch.dtype:
    code = node.attributes.get("dtype", 0)
    return torch_dtype(onnx_type(code) if code else default)


@lowerings.register("RandomNormal", since=1)
def random_normal(node: OperatorNode) -> Any:
    """Numbers of a normal distribution, in a given shape.

    Source: ONNX RandomNormal-22.
    """
    return call_each_run(_RandomNumbers(node, _drawn_dtype(node, "float32"), is_normal=True))


@lowerings.register("RandomNormalLike", since=1)
def random_normal_like(node: OperatorNode, x: Any) -> Any:
    """Numbers of a normal distribution, in the shape of another tensor.

    Source: ONNX RandomNormalLike-22.
    """
    dtype = _drawn_dtype(node, input_type(node) or "float32")
    return call_each_run(_RandomNumbers(node, dtype, is_normal=True), (x,))


@lowerings.register("RandomUniform", since=1)
def random_uniform(node: OperatorNode) -> Any:
    """Numbers of a uniform distribution, in a given shape.

    Source: ONNX RandomUniform-22.
    """
    return call_each_run(_RandomNumbers(node, _drawn_dtype(node, "float32"), is_normal=False))


@lowerings.register("RandomUniformLike", since=1)
def random_uniform_like(node: OperatorNode, x: Any) -> Any:
    """Numbers of a uniform distribution, in the shape of another tensor.

    Source: ONNX RandomUniformLike-22.
    """
    dtype = _drawn_dtype(node, input_type(node) or "float32")
    return call_each_run(_RandomNumbers(node, dtype, is_normal=False), (x,))


@lowerings.register("Bernoulli", since=15)
def bernoulli(node: OperatorNode, x: torch.Tensor) -> Any:
    """1 with the probability that the input gives, else 0.

    Source: ONNX Bernoulli-22.
    """
    return call_each_run(_Coins(node), (x, _drawn_dtype(node, input_type(node) or "float32")))


@lowerings.register("Multinomial", since=7)
def multinomial(node: OperatorNode, x: torch.Tensor) -> Any:
    """Classes drawn for every row by its logarithmic probabilities.

    Source: ONNX Multinomial-22.
    """
    return call_each_run(_Categories(node), (x, _drawn_dtype(node, "int32")))
