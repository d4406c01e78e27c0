"""Gradients that are handed out in flat buffers, bucket by bucket, and read back from there by the update."""

from __future__ import annotations

import contextlib
import functools
import queue
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.distributed.flat_buffers import Bucket, FlatBuffers

__all__ = ["BucketNames", "DeclaredGradients", "ExchangedGradients", "HandOver"]

#: The names in each bucket, by which graphs that hand gradients out are told apart.
BucketNames: TypeAlias = tuple[tuple[str, ...], ...]

#: Converts a tensor like a parameter between the declared layout and the one in which it is held.
Convert: TypeAlias = Callable[[str, Any], Any]

#: What a run returns: outputs, and gradients by name.
Results: TypeAlias = tuple[dict[str, Any], Mapping[str, Any]]


class HandOver:
    """What is traced after the gradients, so that they get into flat buffers while backward goes on.

    The graph of the network has a host call for each bucket, which copies its gradients to where they belong. It runs
    in a thread of its own, while the caller's waits for the buckets in their order and hands them out. So the order is
    the same on every rank whatever TensorFlow computes first; messages leave from the thread that the user chose, and
    what goes wrong with them is raised there as it is; and no thread of TensorFlow waits for another rank, which may
    need that thread.

    A graph with one bucket, or one that XLA compiles, has no host call: its gradients are copied when it has run.

    Attributes:
        names: The names in each bucket.
        streams: Whether the graph hands its buckets out itself.
    """

    def __init__(self, names: BucketNames, declared: Convert, held: Convert, *, streams: bool) -> None:
        """Describe what is handed out.

        Args:
            names: The names in each bucket.
            declared: Brings a gradient to the layout that the network declares.
            held: Brings it back.
            streams: Whether the graph hands its buckets out itself.
        """
        self.names = names
        self.streams = streams
        self._declared, self._held = declared, held
        self._threads: ThreadPoolExecutor | None = None
        self._views: Sequence[Sequence[NDArray[Any]]] = ()
        self._ready: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._on_bucket: Callable[[int], None] = _nobody

    def __call__(
        self, gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable]
    ) -> dict[str, tf.Tensor]:
        """Trace the host calls; return the gradients in the layout that the network declares."""
        declared = {name: self._declared(name, gradient) for name, gradient in gradients.items()}
        if self.streams:
            for index, names in enumerate(self.names):
                # Without gradients that lie in it, a bucket needs no graph to be filled with zeros.
                places = [place for place, name in enumerate(names) if name in declared]
                copy = functools.partial(self._fill, index, places)
                tf.numpy_function(copy, [declared[names[place]] for place in places], [])
        return declared

    @contextlib.contextmanager
    def aimed(
        self, gradients: FlatBuffers, buckets: Sequence[Bucket], on_bucket: Callable[[Bucket], None]
    ) -> Iterator[None]:
        """Say where the gradients of runs in this block go.

        Args:
            gradients: The buffers.
            buckets: All buckets in their order.
            on_bucket: Called for each in the caller's thread.
        """
        self._views = [[gradients[name] for name in names] for names in self.names]
        self._on_bucket = lambda index: on_bucket(buckets[index])
        try:
            yield
        finally:
            self._views, self._on_bucket = (), _nobody

    def call(self, run: Callable[[], Results]) -> tuple[dict[str, Any], DeclaredGradients]:
        """Run a graph and hand its gradients out; see :meth:`aimed`.

        Args:
            run: Runs it.

        Returns:
            Its outputs, and the gradients of this rank alone.
        """
        if self.streams:
            outputs, gradients = self._call_in_thread(run)
        else:
            outputs, gradients = run()
            for index, names in enumerate(self.names):
                arrays = [_seen(gradients[name]) if name in gradients else 0 for name in names]
                self._copy(index, range(len(names)), arrays)
                self._on_bucket(index)
        return outputs, DeclaredGradients(dict(gradients), self._held)

    def _call_in_thread(self, run: Callable[[], Results]) -> Results:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "deep500 buckets")
        self._ready = queue.SimpleQueue()  # of this run alone: one that failed may have left something
        result = self._threads.submit(run)
        result.add_done_callback(functools.partial(_tell_end, self._ready))
        try:
            filled: set[int] = set()
            for index in range(len(self.names)):
                while index not in filled:
                    filled.add(self._ready.get())
                    if _END in filled:
                        result.result()  # raises, if buckets are missing because the graph failed
                        filled.update(range(len(self.names)))
                self._on_bucket(index)
        except BaseException:
            result.exception()  # whoever goes on must not find the graph at work
            raise
        return result.result()

    def _fill(self, index: int, places: Sequence[int], *arrays: NDArray[Any]) -> None:
        """Take the gradients of a bucket; the graph calls it."""
        self._copy(index, places, arrays)
        self._ready.put(index)

    def _copy(self, index: int, places: Sequence[int], arrays: Sequence[Any]) -> None:
        views = self._views[index]
        if len(places) < len(views):
            for place in set(range(len(views))).difference(places):
                views[place][...] = 0
        for place, array in zip(places, arrays, strict=True):
            views[place][...] = array


#: What says, among the numbers of buckets, that the graph has ended.
_END = -1


def _tell_end(ready: queue.SimpleQueue[int], result: Future[Results]) -> None:
    ready.put(_END)


def _nobody(index: int) -> None:
    raise AssertionError("a graph hands gradients out, and nobody said where to")


def _seen(tensor: tf.Tensor) -> NDArray[Any]:
    """Return a tensor's memory to be read, which ``numpy()`` would copy."""
    try:
        return np.asarray(memoryview(tensor))
    except (BufferError, TypeError, ValueError):  # a type that Python's buffers do not know, such as bfloat16
        array: NDArray[Any] = tensor.numpy()
        return array


class DeclaredGradients(MutableMapping[str, Any]):
    """Gradients that are there in the declared layout, and are read in the layout in which parameters are held."""

    def __init__(self, declared: Mapping[str, Any], held: Convert) -> None:
        """Take gradients.

        Args:
            declared: The gradients in the declared layout.
            held: Brings one to the layout in which its parameter is held.
        """
        self._names = dict.fromkeys(declared)
        self._given, self._to_held = declared, held
        self._replaced: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a gradient as it is held."""
        if name in self._replaced:
            return self._replaced[name]
        if name not in self._names:
            raise KeyError(name)
        return self._to_held(name, self._given[name])

    def __setitem__(self, name: str, gradient: Any) -> None:
        """Replace a gradient by one as it is held."""
        self._names[name] = None
        self._replaced[name] = gradient

    def __delitem__(self, name: str) -> None:
        """Take a gradient away."""
        del self._names[name]
        self._replaced.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Number of gradients."""
        return len(self._names)


class ExchangedGradients(DeclaredGradients):
    """Gradients that stand in flat buffers, where an exchange may change them until they are read.

    Attributes:
        buffers: The flat buffers.
    """

    def __init__(self, buffers: FlatBuffers, names: Sequence[str], held: Convert) -> None:
        """Name what there is.

        Args:
            buffers: The flat buffers.
            names: The parameters that have a gradient.
            held: Brings a gradient to the layout in which its parameter is held.
        """
        super().__init__(_Snapshots(buffers, names), held)
        self.buffers = buffers

    @property
    def are_in_buffers(self) -> bool:
        """Whether all gradients are those in the buffers: none was replaced."""
        return not self._replaced

    def held(self, name: str, declared: tf.Tensor) -> tf.Tensor:
        """Bring a gradient in the declared layout to the one in which its parameter is held."""
        result: tf.Tensor = self._to_held(name, declared)
        return result


class _Snapshots(Mapping[str, Any]):
    """Tensors with the values that stand in buffers when they are read."""

    def __init__(self, buffers: FlatBuffers, names: Sequence[str]) -> None:
        self._buffers, self._names = buffers, names

    def __getitem__(self, name: str) -> tf.Tensor:
        return tf.constant(self._buffers[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
