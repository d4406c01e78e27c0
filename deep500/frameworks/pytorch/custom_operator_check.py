"""Checks of operators in PyTorch beyond plain calls: what its own tools say, and compiled graphs of any size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from deep500.core.device import Device, parse_device
from deep500.core.errors import OperatorError
from deep500.core.texts import message_of
from deep500.frameworks.pytorch._arrays import to_tensor
from deep500.frameworks.pytorch._registration import TorchOperator
from deep500.frameworks.pytorch.custom_operator import custom_op
from deep500.frameworks.pytorch.custom_operator_call import prepare_call
from deep500.frameworks.pytorch.device import torch_device
from deep500.operators.custom import Check, CustomOp, NotRunError
from deep500.operators.custom.findings import check_call
from deep500.operators.operator import OptionalArray

__all__ = ["custom_op_checks"]

Inputs = Sequence[OptionalArray]
Cases = Callable[[], Sequence[Inputs]]


def custom_op_checks(op: CustomOp, cases: Cases, *, device: str | Device | None = None) -> list[Check]:
    """Return what is to be looked at beside plain calls and gradients.

    Args:
        op: The operator.
        cases: Makes inputs, and further ones of other sizes where there are some; called by each check.
        device: Where to run; by default on the processor.

    Raises:
        DeviceError: PyTorch does not see the device.
    """
    found = parse_device(device)
    place = torch_device(found)
    return [
        Check("torch.library.opcheck", functools.partial(_check_by_pytorch, op, cases, place)),
        Check("torch.compile", functools.partial(_check_compiled, op, cases, found)),
    ]


def _check_by_pytorch(op: CustomOp, cases: Cases, place: torch.device) -> str:
    """Let PyTorch check schema, inference, autograd and traced derivatives."""
    function = custom_op(op)
    if not isinstance(function, TorchOperator):
        raise NotRunError("it is a function of PyTorch's own")
    tensors = _tensors(op, cases()[0], place)
    arguments = (tensors,) if op.input_count is None else tuple(tensors)
    found: dict[str, Any] = torch.library.opcheck(function.overload, arguments, raise_exception=False)
    for name, result in found.items():
        if result != "SUCCESS":
            reason = message_of(result) if isinstance(result, BaseException) else str(result)
            raise OperatorError(f"{name}: {reason}")
    return ", ".join(name.removeprefix("test_") for name in found)


def _check_compiled(op: CustomOp, cases: Cases, device: Device) -> str:
    """Compile a graph that holds the operator, once for all sizes, and run and differentiate it."""
    function = custom_op(op)
    compiled = torch.compile(lambda *tensors: function(*tensors), fullgraph=True, dynamic=True)
    given = cases()
    for inputs in given:
        check_call(op, inputs, functools.partial(prepare_call, compiled, device=device))
    sizes = "one size" if len(given) == 1 else f"{len(given)} sizes"
    return f"fullgraph, dynamic, {sizes}" + (", with gradients" if op.differentiable else "")


def _tensors(op: CustomOp, inputs: Inputs, place: torch.device) -> list[Any]:
    tensors = [None if x is None else to_tensor(np.array(x)).to(place) for x in inputs]
    for x in tensors:
        if x is not None and op.differentiable and (x.is_floating_point() or x.is_complex()):
            x.requires_grad_()
    return tensors
