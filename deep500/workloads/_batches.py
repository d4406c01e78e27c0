"""Minibatches that a workload is fed: made up beforehand and kept in memory, or read by a sampler within each run."""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.sampler import Batch, Sampler

__all__ = [
    "Batches",
    "SampledBatches",
    "SyntheticBatches",
    "hash_batches",
    "label_classes",
    "random_tensor",
    "synthetic_batch",
]

#: What integer tensors hold at most where nothing says it, plus one: valid as truth values, and as rows of any table.
_SMALLEST_RANGE = 2

#: Losses that compare class numbers, their input 1, with scores, their input 0.
_CLASS_LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")


class Batches(abc.ABC):
    """Where the minibatches of the runs come from.

    Attributes:
        io: What of reading them a run does, in words.
    """

    io: str

    @abc.abstractmethod
    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches, again from the start when they are at their end, with nothing between."""

    @abc.abstractmethod
    def first(self) -> Batch:
        """Return the first minibatch."""

    @property
    @abc.abstractmethod
    def hash(self) -> str:
        """SHA-256 over all of them, or over the first epoch, in the form of :class:`BatchHashEvent`."""


class SyntheticBatches(Batches):
    """Minibatches that were made up before; a run converts one to the framework's tensors, but reads nothing."""

    io = "synthetic, in memory"

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Keep the minibatches."""
        self._batches = tuple(batches)

    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches in turn."""
        return itertools.cycle(self._batches)

    def first(self) -> Batch:
        """Return the first minibatch."""
        return self._batches[0]

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 over all of them."""
        return hash_batches(self._batches)


class SampledBatches(Batches):
    """Minibatches that a sampler reads, one a run; the end of an epoch is part of the run that meets it."""

    io = "data set, read in each run"

    def __init__(self, make_sampler: Callable[[], Sampler]) -> None:
        """Keep what makes a sampler at the start of epoch 0; each use gets one of its own."""
        self._make_sampler = make_sampler

    def endless(self) -> Iterator[Batch]:
        """Iterate over the minibatches of one epoch after the other."""
        sampler = self._make_sampler()
        while True:
            yield from sampler
            sampler.reset()

    def first(self) -> Batch:
        """Read the first minibatch."""
        return next(self._make_sampler())

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 over the first epoch, which is read for it."""
        sampler = self._make_sampler()
        event = BatchHashEvent()
        sampler.events.append(event)
        for _ in sampler:
            continue
        return event.digest


class _Served:
    """What :class:`BatchHashEvent` asks a sampler: minibatches that were never sampled are one epoch."""

    epoch = 0

    def __init__(self, count: int) -> None:
        self.position = 0
        self._count = count

    def __len__(self) -> int:
        return self._count


def hash_batches(batches: Sequence[Mapping[str, NDArray[Any]]]) -> str:
    """Return the SHA-256 that :class:`BatchHashEvent` has for these minibatches as one epoch."""
    event = BatchHashEvent()
    served = _Served(len(batches))
    for served.position, batch in enumerate(batches, 1):
        event.after_sampling(cast(Sampler, served), batch)
    return event.digest


def random_tensor(
    descriptor: TensorDescriptor, stream: np.random.Generator, *, below: int | None = None, positive: bool = False
) -> NDArray[Any]:
    """Draw a tensor: floats from the standard normal distribution, whole numbers and truth values uniformly.

    Args:
        descriptor: Dtype and shape; every size is known.
        stream: Where the numbers come from.
        below: Whole numbers are from 0 to below this; by default 0 and 1.
        positive: Draw floats uniformly from [0.5, 1.5) instead, where every elementary function is finite.

    Raises:
        MeasurementError: There is no rule for the dtype.
    """
    sizes = [size for size in descriptor.shape or () if isinstance(size, int)]
    try:
        return _drawn(descriptor, sizes, stream, below or _SMALLEST_RANGE, positive)
    except (MemoryError, OverflowError, ValueError) as error:
        if isinstance(error, MeasurementError):
            raise
        raise MeasurementError(f"Values of {descriptor} do not fit into memory: {error}") from error


def _drawn(
    descriptor: TensorDescriptor, sizes: list[int], stream: np.random.Generator, below: int, positive: bool
) -> NDArray[Any]:
    dtype = descriptor.numpy_dtype
    if dtype.kind in "iu":
        return stream.integers(0, below, sizes).astype(dtype)
    if dtype.kind == "b":
        return stream.integers(0, 2, sizes).astype(bool)
    if descriptor.dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise MeasurementError(
            f"Values of {descriptor} cannot be made up; there are rules for floats of 16, 32 and 64 bits, whole "
            "numbers and truth values."
        )
    wide = np.float64 if dtype.itemsize > 4 else np.float32
    values: Any = stream.random(sizes, wide) + wide(0.5) if positive else stream.standard_normal(sizes, wide)
    return np.asarray(values).astype(dtype)


def synthetic_batch(network: Network, sizes: Mapping[str, tuple[int, ...]], seed: int, number: int) -> Batch:
    """Make up one minibatch for a network.

    Args:
        network: The network.
        sizes: Shapes by name, for each input that is to be fed.
        seed: The workload's seed.
        number: Number of the minibatch; each has random streams of its own, one an input.
    """
    values = {value.name: value for value in network.model.graph.inputs}
    batch = {}
    for name, shape in sizes.items():
        descriptor = TensorDescriptor(network.inputs[name].dtype, shape)
        stream = random_stream(seed, "workload", "batch", number, name)
        batch[name] = random_tensor(descriptor, stream, below=_classes(values[name]))
    return batch


def label_classes(op_type: str, index: int, scores: Sequence[Any] | None) -> int | None:
    """Return from how many classes an operator's input is, when it is the labels of a loss; else ``None``.

    Args:
        op_type: The operator.
        index: The number of the input.
        scores: Shape of the operator's input 0.
    """
    is_label = op_type in _CLASS_LOSSES and index == 1
    classes = scores[1] if is_label and scores is not None and len(scores) > 1 else None
    return classes if isinstance(classes, int) else None


def _classes(value: ir.Value) -> int | None:
    """Return the number of classes when a value is the labels of a loss."""
    for node, index in value.uses():
        scores = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
        classes = label_classes(node.op_type, index, list(scores) if scores is not None else None)
        if classes:
            return classes
    return None
