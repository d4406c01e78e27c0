"""A tensor on a device in the form in which communicators look at buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from deep500.core.errors import CommunicationError
from deep500.core.tensor_descriptor import numpy_dtype
from deep500.distributed.buffers import DTYPES
from deep500.frameworks.pytorch._dtypes import dtype_name, torch_dtype

__all__ = ["DeviceArray", "device_view"]

_ACCEPTED = (
    "Accepted are tensors on the communicator's GPU that are one-dimensional, contiguous and detached, of the dtypes "
    f"{', '.join(DTYPES)}"
)


class DeviceArray:
    """A one-dimensional tensor with as much of an array's form as :class:`Communicator` uses.

    Attributes:
        tensor: The tensor; its memory is what is seen.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        """Look at a tensor."""
        self.tensor = tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's element type."""
        return numpy_dtype(dtype_name(self.tensor.dtype))

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.tensor.numel()

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.tensor.element_size()

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def astype(self, dtype: Any) -> DeviceArray:
        """Return a copy of another element type."""
        return DeviceArray(self.tensor.to(torch_dtype(np.dtype(dtype).name), copy=True))

    def view(self, dtype: Any) -> DeviceArray:
        """Return the same memory as elements of another type."""
        if not self.size:  # whose strides may be anything, which PyTorch refuses to see otherwise
            return DeviceArray(torch.empty(0, dtype=torch_dtype(np.dtype(dtype).name), device=self.tensor.device))
        return DeviceArray(self.tensor.view(torch_dtype(np.dtype(dtype).name)))

    def __setitem__(self, key: Any, value: DeviceArray) -> None:
        """Copy elements of the same type into the memory."""
        self.tensor[key] = value.tensor

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Divide in place, which is what a mean takes."""
        if function is not np.divide or method != "__call__" or options.get("out") != (self,) or inputs[0] is not self:
            return NotImplemented
        self.tensor.div_(inputs[1])
        return self

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Make an empty tensor like this one, or say whether two share memory."""
        if function is np.empty_like:
            like, dtype = arguments
            return DeviceArray(torch.empty_like(like.tensor, dtype=torch_dtype(np.dtype(dtype).name)))
        if function is np.may_share_memory:
            first, second = (_range(array.tensor) for array in arguments)
            return max(first[0], second[0]) < min(first[1], second[1])
        return NotImplemented


def device_view(buffer: Any, device: torch.device) -> DeviceArray:
    """Return a buffer on a device without a copy.

    Args:
        buffer: A tensor of PyTorch, or of another library that offers ``__dlpack__``.
        device: Where it must be.

    Raises:
        CommunicationError: It cannot be exchanged in place; the message says why and what to do.
    """
    name = type(buffer).__name__
    if getattr(buffer, "requires_grad", False) is True:
        raise CommunicationError(f"Received a {name} that requires a gradient. {_ACCEPTED}; exchange its .detach().")
    if not isinstance(buffer, torch.Tensor):
        try:
            buffer = torch.utils.dlpack.from_dlpack(buffer)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise CommunicationError(f"Received a {name}. {_ACCEPTED}; make a tensor of it.") from error
    what = f"a {name} of dtype {dtype_name(buffer.dtype)} and shape {tuple(buffer.shape)} on {buffer.device}"
    if buffer.device != device:
        raise CommunicationError(f"Received {what}; this rank's is {device}. {_ACCEPTED}; copy it to there.")
    if dtype_name(buffer.dtype) not in DTYPES:
        raise CommunicationError(f"Received {what}. {_ACCEPTED}; convert it into one of these.")
    if buffer.dim() != 1:
        raise CommunicationError(f"Received {what}. {_ACCEPTED}; pass a flat view of it, reshape(-1).")
    if not buffer.is_contiguous():
        raise CommunicationError(f"Received {what} that is not contiguous. {_ACCEPTED}; copy it into such a buffer.")
    return DeviceArray(buffer)


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + tensor.numel() * tensor.element_size()
