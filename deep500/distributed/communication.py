"""Exchange of whole arrays: what seed 002's form of a distributed optimizer calls, and what schemes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deep500.core.errors import CommunicationError
from deep500.core.texts import one_line, shown
from deep500.distributed.buffers import host_view
from deep500.distributed.communicator import Communicator

__all__ = ["CommunicationNetwork", "exchange", "gather_bytes", "mix"]


class CommunicationNetwork:
    """Exchanges arrays of any shape over a communicator; each method returns a new array.

    The names are those of the published Deep500. Every rank must call the same methods in the same order.

    Attributes:
        communicator: What carries the messages.
        rank: The number of this rank.
        size: The number of ranks.
    """

    def __init__(self, communicator: Communicator) -> None:
        """Exchange over a communicator."""
        self.communicator = communicator
        self.rank = communicator.rank
        self.size = communicator.size

    def sync_all(self, tensor: ArrayLike) -> NDArray[Any]:
        """Return the sum over all ranks."""
        flat, shape = _flat(tensor)
        self.communicator.allreduce(flat)
        return flat.reshape(shape)

    def sync_all_with_root(self, tensor: ArrayLike) -> NDArray[Any]:
        """Return the array of rank 0."""
        flat, shape = _flat(tensor)
        self.communicator.broadcast(flat, root=0)
        return flat.reshape(shape)

    def gather_at_root(self, tensor: ArrayLike) -> NDArray[Any] | None:
        """Return the arrays of all ranks, that of the root too, ``[size, ...]``, on rank 0; ``None`` elsewhere."""
        flat, shape = _flat(tensor)
        gathered = np.empty(self.size * flat.size, flat.dtype)
        self.communicator.allgather(flat, gathered)
        return gathered.reshape(self.size, *shape) if self.rank == 0 else None

    def reduce_from_neighbors(self, tensor: ArrayLike) -> NDArray[Any]:
        r"""Return the sum of this rank's array and those of its left and right neighbours on the ring.

        It is :math:`x_r + x_{r-1} + x_{r+1}`, always of three arrays, so that a third of it is a mean: with two ranks
        both neighbours are the same one, which counts twice, and a single rank is its own neighbour.
        """
        flat, shape = _flat(tensor)
        left, right = (self.rank - 1) % self.size, (self.rank + 1) % self.size
        received = exchange(self.communicator, flat, {left, right})
        total: NDArray[Any] = flat + received[left] + received[right]
        return total.reshape(shape)


def exchange(communicator: Communicator, array: NDArray[Any], peers: Iterable[int]) -> dict[int, NDArray[Any]]:
    """Send an array to each of some ranks, which send theirs; return what each sent.

    Args:
        communicator: What carries the messages.
        array: One-dimensional and contiguous; it is not changed.
        peers: Ranks; the relation must be symmetric. This rank itself may be among them, and costs nothing.
    """
    rank, size = communicator.rank, communicator.size
    others = set(peers) - {rank}
    received = {peer: np.empty_like(array) for peer in others}
    # Where all ranks have neighbours at the same distances, what comes first is waited for first.
    destinations = sorted(others, key=lambda peer: (peer - rank) % size)
    sources = sorted(others, key=lambda peer: (rank - peer) % size)
    works = [
        communicator.isendrecv(array, destination, received[source], source)
        for destination, source in zip(destinations, sources, strict=True)
    ]
    for work in works:
        work.wait()
    return {**received, rank: array}


def mix(communicator: Communicator, array: NDArray[Any], weights: Mapping[int, float]) -> None:
    r"""Replace an array by :math:`\sum_j w_j x_j` over this rank and its neighbours, summed in the order of ranks.

    Args:
        communicator: What carries the messages.
        array: One-dimensional and contiguous.
        weights: The weight of each neighbour and of this rank; who is a neighbour must be symmetric.
    """
    received = exchange(communicator, array, weights)
    terms = [weights[rank] * received[rank] for rank in sorted(weights)]
    total = terms[0]
    for term in terms[1:]:
        total += term
    array[...] = total


def gather_bytes(communicator: Communicator, *parts: NDArray[Any]) -> list[list[NDArray[Any]]]:
    """Gather several arrays of any dtypes from all ranks in one message each.

    Args:
        communicator: What carries the messages.
        *parts: One-dimensional arrays, of the same dtypes and sizes on every rank.

    Returns:
        For each rank, in order, its arrays.
    """
    message = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts])
    gathered = np.empty(communicator.size * message.size, np.uint8)
    communicator.allgather(message, gathered)
    return [_unpacked(row, parts) for row in gathered.reshape(communicator.size, message.size)]


def _unpacked(row: NDArray[np.uint8], like: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    start = 0
    for part in like:
        found.append(np.frombuffer(row[start : start + part.nbytes].tobytes(), part.dtype))
        start += part.nbytes
    return found


def _flat(tensor: ArrayLike) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return a copy in one dimension, which may be exchanged in place, and the shape.

    Raises:
        CommunicationError: It is no array of a dtype that can be exchanged.
    """
    try:
        array = np.array(tensor)
    except ValueError as error:  # lists of different lengths
        raise CommunicationError(
            f"Received {shown(tensor)}, which is no array ({one_line(str(error))}). Accepted are arrays of any shape."
        ) from error
    return host_view(np.ascontiguousarray(array).reshape(-1)), array.shape
