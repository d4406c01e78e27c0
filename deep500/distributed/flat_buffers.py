"""Gradients and parameters in one piece of memory a dtype, so that few, large messages carry them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import InvalidInputError
from deep500.core.tensor_descriptor import TensorDescriptor

__all__ = [
    "ALIGNMENT_BYTES",
    "Bucket",
    "FlatBuffer",
    "FlatBuffers",
    "FlatExecutor",
    "OverlappingExecutor",
    "TakingExecutor",
]


#: Frameworks share an array's memory, in place of copying it, where it begins at a multiple of so many bytes.
ALIGNMENT_BYTES = 64


def _aligned_zeros(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a vector of zeros that frameworks can share; NumPy's own begin at multiples of 16 bytes."""
    memory = np.zeros(count * dtype.itemsize + ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[start : start + count * dtype.itemsize].view(dtype)


class _Memory:
    """Some elements of one dtype, one after another."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def dtype(self) -> str:
        """NumPy's name of the element type."""
        return str(self._array.dtype.name)

    @property
    def array(self) -> NDArray[Any]:
        """The elements, ``[elements]``, contiguous; setting it writes into the same memory."""
        return self._array

    @array.setter
    def array(self, value: ArrayLike) -> None:
        if value is not self._array:
            self._array[...] = value


class Bucket(_Memory):
    """A part of a flat buffer whose tensors are exchanged together.

    Attributes:
        names: The tensors in it, in the order of the network.
        start: Where it begins in the flat buffer, in elements.
    """

    def __init__(self, names: Sequence[str], start: int, array: NDArray[Any]) -> None:
        """Describe a part.

        Args:
            names: The tensors in it.
            start: Where it begins in the flat buffer.
            array: The part itself, a view.
        """
        super().__init__(array)
        self.names = tuple(names)
        self.start = start


class FlatBuffer(_Memory):
    """All tensors of one dtype, one after another.

    Attributes:
        views: The tensors by name, each a view of its part in its own shape.
        starts: Where each begins, in elements.
    """

    def __init__(self, descriptors: Mapping[str, TensorDescriptor]) -> None:
        """Make a buffer of zeros.

        Args:
            descriptors: The tensors in their order, all of one dtype and of known size.
        """
        sizes = {name: described.element_count or 0 for name, described in descriptors.items()}
        super().__init__(_aligned_zeros(sum(sizes.values()), next(iter(descriptors.values())).numpy_dtype))
        self.views: dict[str, NDArray[Any]] = {}
        self.starts: dict[str, int] = {}
        start = 0
        for name, size in sizes.items():
            shape = tuple(int(d) for d in descriptors[name].shape or () if d is not None)
            self.starts[name], self.views[name] = start, self.array[start : start + size].reshape(shape)
            start += size

    def buckets(self, size_bytes: int) -> list[Bucket]:
        """Return consecutive parts in reverse order, since backward computes the last tensors' gradients first.

        Args:
            size_bytes: Size up to which tensors are put together; a larger tensor is a bucket of its own.
        """
        made: list[Bucket] = []
        names: list[str] = []
        stop = self.array.size
        for name in reversed(self.views):
            start = self.starts[name]
            if names and (stop - start) * self.array.itemsize > size_bytes:
                made.append(self._bucket(names, stop))
                stop, names = self.starts[names[0]], []
            names.insert(0, name)
        if names:
            made.append(self._bucket(names, stop))
        return made

    def _bucket(self, names: list[str], stop: int) -> Bucket:
        start = self.starts[names[0]]
        return Bucket(names, start, self.array[start:stop])


class FlatBuffers:
    """A flat buffer for each dtype of some tensors; iterating yields them.

    Example:
        >>> buffers = FlatBuffers({"w": TensorDescriptor("float32", (2, 3)), "b": TensorDescriptor("float32", (3,))})
        >>> buffers["b"][...] = 1
        >>> [buffer.array.tolist() for buffer in buffers]
        [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]]
        >>> [bucket.names for bucket in buffers.buckets(size_bytes=16)]
        [('b',), ('w',)]
    """

    def __init__(self, descriptors: Mapping[str, TensorDescriptor]) -> None:
        """Make buffers of zeros.

        Args:
            descriptors: Dtype and shape of each tensor, in the order of the network.

        Raises:
            InvalidInputError: The size of one is not known.
        """
        by_dtype: dict[str, dict[str, TensorDescriptor]] = {}
        for name, descriptor in descriptors.items():
            if descriptor.element_count is None:
                raise InvalidInputError(f"The tensor {name!r} is {descriptor}; accepted are tensors of known size.")
            by_dtype.setdefault(descriptor.dtype, {})[name] = descriptor
        self._buffers = {dtype: FlatBuffer(described) for dtype, described in by_dtype.items()}
        self._views = {name: view for buffer in self for name, view in buffer.views.items()}

    def __iter__(self) -> Iterator[FlatBuffer]:
        """Iterate over the buffers, one a dtype."""
        return iter(self._buffers.values())

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the tensor of a name, a view of its buffer."""
        return self._views[name]

    @property
    def names(self) -> list[str]:
        """Names of all tensors, dtype by dtype."""
        return list(self._views)

    @property
    def size_bytes(self) -> int:
        """Size of all tensors together."""
        return sum(buffer.array.nbytes for buffer in self)

    def buckets(self, size_bytes: int) -> list[Bucket]:
        """Return the buckets of all dtypes; see :meth:`FlatBuffer.buckets`."""
        return [bucket for buffer in self for bucket in buffer.buckets(size_bytes)]


@runtime_checkable
class OverlappingExecutor(Protocol):
    """An executor that hands its gradients out while backward still runs.

    An adapter whose framework lets it do so has this method; others need not: their gradients are copied into the
    buffers when backward has ended.
    """

    def gradient_buckets(
        self,
        inputs: Mapping[str, Any],
        loss: str,
        gradients: FlatBuffers,
        buckets: list[Bucket],
        on_bucket: Callable[[Bucket], None],
    ) -> dict[str, Any]:
        """Run the network and differentiate, as ``inference_and_backprop`` does.

        Each gradient is computed in its view of ``gradients``, where the update finds it, too: nothing is copied back.
        ``on_bucket`` is called once for each bucket when all gradients in it are there, in the same order on every
        rank; the bucket is not touched by the executor from then on.

        Args:
            inputs: A tensor for every input that the loss depends on.
            loss: Name of a scalar output.
            gradients: Where the gradients go; zeros by parameters that the loss ignores.
            buckets: All buckets, in the order in which they are to be handed out.
            on_bucket: Called for each.
        """


@runtime_checkable
class TakingExecutor(Protocol):
    """An executor with :meth:`OverlappingExecutor.gradient_buckets` that has to be told when the exchange is over.

    An adapter whose update does not read the buffers themselves, as on a GPU, has this method too.
    """

    def take_exchanged(self, gradients: FlatBuffers) -> None:
        """Use, from now on, the gradients as they stand in the buffers; called before each update."""


@runtime_checkable
class FlatExecutor(Protocol):
    """An executor that can have its parameters in flat buffers, so that whoever exchanges them need not copy them."""

    def lay_parameters(self, buffers: FlatBuffers) -> bool:
        """Move the parameters, as they are, into the buffers, unless they are there.

        Args:
            buffers: Of all parameters.

        Returns:
            Whether the buffers are the parameters' own memory from now on: what is written there counts at once.
        """
