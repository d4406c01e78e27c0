"""Operators written in Python, in PyTorch: on NumPy arrays that share the tensors' memory, or CuPy's on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from deep500.core.errors import MissingDependencyError, OperatorError
from deep500.frameworks.pytorch._arrays import to_array, to_tensor
from deep500.frameworks.pytorch._registration import define, definitions, infer_like, unique_name
from deep500.operators.custom import CustomOp

__all__ = ["register_python"]

_BACKWARD = "(Tensor[] given, int[] places, bool[] wanted) -> Tensor[]"


def register_python(op: CustomOp) -> Any:
    """Register an operator with PyTorch's dispatcher; return its entry."""
    library, name = definitions(), unique_name(op)
    kernels = _Kernels(op)
    inputs = "Tensor[] x" if op.input_count is None else ", ".join(f"Tensor? x{i}" for i in range(op.input_count))
    outputs = "Tensor" if op.output_count == 1 else f"({', '.join(['Tensor'] * op.output_count)})"
    kernels.entry = define(op, name, f"({inputs}) -> {outputs}", kernels.fake_forward)
    kernels.backward_entry = define(op, f"_{name}_backward", _BACKWARD, kernels.fake_backward)
    library.impl(name, kernels.forward, "CompositeExplicitAutograd")
    library.impl(name, kernels.record_forward, "Autograd", with_keyset=True)
    library.impl(f"_{name}_backward", kernels.backward, "CompositeExplicitAutograd")
    library.impl(f"_{name}_backward", kernels.record_backward, "Autograd", with_keyset=True)
    return kernels.entry


class _Kernels:
    """What PyTorch calls for one operator."""

    entry: Any
    backward_entry: Any

    def __init__(self, op: CustomOp) -> None:
        self.op = op
        self._is_traced = False

    def forward(self, *inputs: Any) -> Any:
        """Run the operator."""
        tensors = self._listed(inputs)
        place = _Place(self.op, tensors)
        with place.current():
            arrays = self.op.run_forward([place.array(x) for x in tensors])
            outputs = _unshared([place.tensor(y) for y in arrays], tensors)
        if self._is_traced and not self.op.infers:
            self._check_default(tensors, outputs)
        return outputs[0] if self.op.output_count == 1 else tuple(outputs)

    def backward(self, given: Sequence[torch.Tensor], places: Sequence[int], wanted: Sequence[bool]) -> Any:
        """Run the operator's backward; return the gradients that are wanted."""
        at = dict(zip(places, given))
        outs, ins = self.op.output_count, len(wanted)
        slots = [at.get(index) for index in range(2 * outs + ins)]
        place = _Place(self.op, slots)
        with place.current():
            arrays = [place.array(x) for x in slots]
            found = self.op.run_backward(arrays[:outs], arrays[outs : outs + ins], arrays[outs + ins :])
            gradients = [
                torch.zeros_like(x, memory_format=torch.contiguous_format) if y is None else place.tensor(y)
                for x, y, is_wanted in zip(slots[outs : outs + ins], found, wanted)
                if is_wanted and x is not None
            ]
        return _unshared(gradients, given)

    def fake_forward(self, *inputs: Any) -> Any:
        """Return outputs without values, for tracing."""
        tensors = self._listed(inputs)
        self._is_traced = True
        types = infer_like(self.op, tensors)
        like = next(x for x in tensors if x is not None)
        outputs = tuple(like.new_empty(shape, dtype=dtype) for shape, dtype in types)
        return outputs[0] if self.op.output_count == 1 else outputs

    def fake_backward(self, given: Sequence[torch.Tensor], places: Sequence[int], wanted: Sequence[bool]) -> Any:
        """Return gradients without values, for tracing."""
        at = dict(zip(places, given))
        tensors = [at[self.op.output_count + index] for index, is_wanted in enumerate(wanted) if is_wanted]
        return [tensor.new_empty(tensor.shape) for tensor in tensors]

    def record_forward(self, keys: Any, *inputs: Any) -> Any:
        """Run the operator below autograd; record it where a gradient is wanted."""
        tensors = self._listed(inputs)
        if _is_recorded(self.op, tensors):
            return _Recorded.apply(self, keys, *tensors)
        return _below_autograd(self.entry, keys, *inputs)

    def record_backward(
        self, keys: Any, given: Sequence[torch.Tensor], places: Sequence[int], wanted: Sequence[bool]
    ) -> Any:
        """Run the backward below autograd; a derivative of the result is an error."""
        if _is_recorded(self.op, given):
            return list(_Refused.apply(self, keys, places, wanted, *given))
        return _below_autograd(self.backward_entry, keys, given, places, wanted)

    def differentiate(
        self, saved: Sequence[torch.Tensor | None], grads: Sequence[torch.Tensor | None], needed: Sequence[bool]
    ) -> list[torch.Tensor | None]:
        """Return the gradients by the inputs; saved are the inputs and the outputs."""
        self.op.check_differentiable()
        ins = len(saved) - self.op.output_count
        wanted = [is_needed and x is not None for x, is_needed in zip(saved[:ins], needed)]
        slots = [g if _is_float(y) else None for g, y in zip(grads, saved[ins:])] + list(saved)
        places = [index for index, tensor in enumerate(slots) if tensor is not None]
        found = iter(self.backward_entry([slots[index] for index in places], places, wanted))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def _listed(self, inputs: Any) -> Sequence[torch.Tensor | None]:
        listed: Sequence[torch.Tensor | None] = inputs[0] if self.op.input_count is None else inputs
        return listed

    def _check_default(self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor]) -> None:
        """Check what graphs were compiled for: an operator without ``infer`` returns what is like its first input."""
        for index, (output, (shape, dtype)) in enumerate(zip(outputs, infer_like(self.op, inputs))):
            if (list(output.shape), output.dtype) != (shape, dtype):
                raise OperatorError(
                    f"{self.op.name}.forward returned {output.dtype} of shape {tuple(output.shape)} as output {index}; "
                    f"torch.compile was told {dtype} of shape {tuple(shape)}, like the first input. Give the operator "
                    f"an infer(shapes, dtypes)."
                )


class _Recorded(torch.autograd.Function):
    """What autograd records of a forward."""

    @staticmethod
    def forward(ctx: Any, kernels: _Kernels, keys: Any, *tensors: torch.Tensor | None) -> Any:
        arguments = (list(tensors),) if kernels.op.input_count is None else tensors
        outputs = _below_autograd(kernels.entry, keys, *arguments)
        ctx.kernels = kernels
        ctx.save_for_backward(*tensors, *((outputs,) if kernels.op.output_count == 1 else outputs))
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        gradients = ctx.kernels.differentiate(ctx.saved_tensors, grads, ctx.needs_input_grad[2:])
        return None, None, *gradients


class _Refused(torch.autograd.Function):
    """What autograd records of a backward, which is Python code without a backward of its own."""

    @staticmethod
    def forward(
        ctx: Any, kernels: _Kernels, keys: Any, places: Sequence[int], wanted: Sequence[bool], *given: torch.Tensor
    ) -> Any:
        ctx.name = kernels.op.name
        return tuple(_below_autograd(kernels.backward_entry, keys, list(given), places, wanted))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise OperatorError(
            f"{ctx.name} cannot be differentiated twice: its backward is Python code without a backward of its own. Do "
            f"without create_graph=True, or detach."
        )


def _below_autograd(entry: Any, keys: Any, *arguments: Any) -> Any:
    with torch._C._AutoDispatchBelowAutograd():
        return entry.redispatch(keys & torch._C._after_autograd_keyset, *arguments)


def _is_recorded(op: CustomOp, tensors: Sequence[torch.Tensor | None]) -> bool:
    """Whether autograd has to know of a call; forward-mode derivatives are refused."""
    present = [x for x in tensors if x is not None]
    if any(torch._unpack_dual(x, level=0).tangent is not None for x in present):
        raise OperatorError(
            f"{op.name} has no forward-mode derivative. Use reverse mode (backward, torch.autograd.grad)."
        )
    is_recorded = torch.is_grad_enabled() and any(x.requires_grad for x in present)
    if is_recorded and torch._C._are_functorch_transforms_active():
        raise OperatorError(
            f"{op.name} is Python code, which torch.func cannot differentiate. Use backward or torch.autograd.grad."
        )
    return is_recorded


class _Place:
    """Where the tensors of a call lie, and how they become arrays and back."""

    def __init__(self, op: CustomOp, tensors: Sequence[torch.Tensor | None]) -> None:
        present = [x for x in tensors if x is not None]
        if not present:
            raise OperatorError(f"{op.name} was given no tensor.")
        self.device = present[0].device
        for x in present:
            if x.layout is not torch.strided:
                raise OperatorError(f"{op.name} was given a tensor of the layout {x.layout}; accepted are dense ones.")
            if x.device != self.device:
                raise OperatorError(
                    f"{op.name} was given tensors on {self.device} and on {x.device}; accepted are tensors on one "
                    f"device. Move them with .to(device)."
                )
        wants_cupy = getattr(op, "array_module", "numpy") == "cupy" and self.device.type == "cuda"
        self.cupy = _cupy(op) if wants_cupy else None

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let CuPy work on PyTorch's device and stream."""
        if self.cupy is None:
            yield
            return
        stream = torch.cuda.current_stream(self.device).cuda_stream
        with self.cupy.cuda.Device(self.device.index), self.cupy.cuda.ExternalStream(stream):
            yield

    def array(self, tensor: torch.Tensor | None) -> Any:
        """Return a tensor as an array that cannot be written to, of NumPy or, on a GPU, perhaps of CuPy."""
        if tensor is None:
            return None
        if self.cupy is not None:
            return self.cupy.from_dlpack(tensor.detach())
        array = to_array(tensor).view()
        array.flags.writeable = False  # an operator that changes its inputs would break autograd unseen
        return array

    def tensor(self, array: Any) -> torch.Tensor:
        """Return an array as a tensor on the device."""
        if self.cupy is not None and not isinstance(array, np.ndarray):
            found: torch.Tensor = torch.utils.dlpack.from_dlpack(self.cupy.ascontiguousarray(array))
            return found
        return to_tensor(np.ascontiguousarray(array).reshape(array.shape)).to(self.device)


def _cupy(op: CustomOp) -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingDependencyError(
            f"{op.name} works on CuPy arrays on a GPU, and the library 'cupy' is not installed. Install it with: "
            f"pip install 'deep500[cuda]'"
        ) from error
    return cupy


def _unshared(results: list[torch.Tensor], inputs: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """Copy results that share memory with an input or another result, which PyTorch takes for separate."""
    taken = [_memory(x) for x in inputs if x is not None]
    found = []
    for result in results:
        begin, end = _memory(result)
        is_shared = any(begin < other_end and other_begin < end for other_begin, other_end in taken)
        found.append(result.clone() if is_shared else result)
        taken.append((begin, end))
    return found


def _memory(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _is_float(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())
