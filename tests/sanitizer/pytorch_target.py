"""Calls with PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from deep500.core.errors import OperatorError
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.operators.custom import CustomOp
from tests.sanitizer.target import UNKNOWN, Function, Given, Target
from tests.unit.frameworks.pytorch.support import squash
from tests.unit.operators.array_forms import SHAPES
from tests.unit.operators.sources import mixed

__all__ = ["PyTorchTarget"]


class _Subclass(torch.Tensor):
    """A tensor of the user's own kind."""


class PyTorchTarget(Target):
    name = "pytorch"
    forms = (
        "plain", "transposed", "gaps", "expanded", "overlapping", "negated", "unaligned", "offset", "of NumPy",
        "fixed", "parameter", "subclass", "inference",
    )  # fmt: skip
    dtypes = (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "complex64", "complex128", "bfloat16", "float8_e5m2", "float8_e4m3fn",
    )  # fmt: skip
    highest_rank = 64
    refusals = (OperatorError,)

    def given(self, array: np.ndarray, form: str) -> Given:
        value = _in_form(to_tensor(array.copy()), form)
        return Given(value, to_array(value.clone()), f"{form} {array.dtype}{list(array.shape)}")

    def odd(self) -> Sequence[Callable[[], Given]]:
        ones = torch.ones(2, 3)
        return [
            *(lambda x=x: Given(x, UNKNOWN, f"{x!r:.40}") for x in (1, 2.5, "text", [1.0], object(), np.ones(3))),
            lambda: Given(ones.to_sparse(), UNKNOWN, "a sparse tensor"),
            lambda: Given(ones.to_sparse_csr(), UNKNOWN, "a sparse tensor in rows"),
            lambda: Given(ones.to_mkldnn(), UNKNOWN, "an opaque tensor"),
            lambda: Given(torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8), UNKNOWN, "a quantised tensor"),
            lambda: Given(ones.to("meta"), UNKNOWN, "a tensor without data"),
            lambda: Given(torch.complex(ones, ones).conj(), UNKNOWN, "a conjugate"),
        ]

    def arrays(self, results: Any) -> list[np.ndarray]:
        return [to_array(y) for y in (results if isinstance(results, tuple) else (results,))]

    def gradients(
        self, op: CustomOp, inputs: Sequence[Given], outputs: Any, grads: Sequence[Given | None], call: Function
    ) -> list[np.ndarray | None]:
        known: dict[int, Any] = {}
        for given in inputs:
            x = given.value
            if x is not None:
                known[id(x)] = x.clone() if x.is_inference() else x.detach()
        leaves = {key: x.requires_grad_() for key, x in known.items() if x.is_floating_point()}
        tensors = [known.get(id(given.value)) for given in inputs]
        results = call(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(y, g.value) for y, g in zip(results, grads) if g is not None]
        found = torch.autograd.grad(
            [y for y, _ in pairs], list(leaves.values()), [g for _, g in pairs], allow_unused=True
        )
        by_leaf = dict(zip(leaves, found))
        gradients = [by_leaf.get(id(given.value)) for given in inputs]
        return [None if g is None else to_array(g) for g in gradients]

    def raw(self, data: Any) -> str:
        """Call the operator of a backward as a graph that somebody else wrote may do: with any numbers."""
        forward = self.function(data.draw(st.sampled_from([mixed(scale=3.0), squash()]))).overload
        entry = getattr(torch.ops.deep500, f"_{forward._schema.name.removeprefix('deep500::')}_backward").default
        numbers = st.lists(st.integers(-2, 9) | st.sampled_from([2**62, -(2**62), 2**31, 127]), max_size=8)
        tensors = [torch.ones(data.draw(SHAPES), dtype=torch.float64) for _ in range(data.draw(st.integers(0, 7)))]
        places, sizes, ranks, dtypes = (data.draw(numbers) for _ in range(4))
        if data.draw(st.booleans()):
            places = list(range(len(tensors)))
        try:
            entry(tensors, places, sizes, ranks, dtypes, data.draw(st.lists(st.booleans(), max_size=4)))
        except (RuntimeError, ValueError, IndexError):
            return "refused: backward's operator"
        return "right"


def _in_form(tensor: torch.Tensor, form: str) -> torch.Tensor:
    if form == "transposed":
        backwards = tuple(reversed(range(tensor.ndim)))
        return tensor.permute(backwards).contiguous().permute(backwards)
    if form == "gaps":
        wide = tensor.new_zeros(*tensor.shape, 3)
        wide[..., 1] = tensor
        return wide[..., 1]
    if form == "expanded" and tensor.numel() and tensor.ndim:
        return tensor[..., :1].expand(tensor.shape)
    if form == "overlapping" and tensor.numel() and tensor.ndim:
        flat = tensor.new_zeros(sum(tensor.shape)) + tensor.flatten()[0]
        return flat.as_strided(tensor.shape, [1] * tensor.ndim)
    if form == "negated" and tensor.dtype.is_floating_point and tensor.element_size() > 1:
        return torch._neg_view(-tensor)
    if form == "unaligned" and tensor.numel() and not tensor.is_complex():  # of which PyTorch's own copies crash
        return _unaligned(tensor)
    if form == "offset":
        return torch.cat([tensor.new_zeros(3), tensor.flatten()])[3:].view(tensor.shape)
    return _of_type(tensor, form)


def _of_type(tensor: torch.Tensor, form: str) -> torch.Tensor:
    if form == "parameter":
        return torch.nn.Parameter(tensor, requires_grad=False)
    if form == "subclass":
        return tensor.as_subclass(_Subclass)
    if form == "inference":
        with torch.inference_mode():
            return tensor.clone()
    if form == "of NumPy":
        return to_tensor(to_array(tensor).T.copy().T)
    if form == "fixed":
        array = to_array(tensor).copy()
        array.flags.writeable = False
        return to_tensor(array)
    return tensor


def _unaligned(tensor: torch.Tensor) -> torch.Tensor:
    memory = bytearray(1) + bytearray(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return torch.frombuffer(memory, dtype=tensor.dtype, offset=1).view(tensor.shape)
