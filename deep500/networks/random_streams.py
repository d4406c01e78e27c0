"""The random numbers that the operators of one executor's network draw, in streams that can be continued."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deep500.core.errors import CheckpointError
from deep500.core.random import random_stream
from deep500.core.stateful import State

__all__ = ["RandomStreams", "node_stream", "streams_in_use"]

_IN_USE: contextvars.ContextVar[RandomStreams | None] = contextvars.ContextVar("_IN_USE", default=None)


class RandomStreams:
    """NumPy's streams from which operators draw, one for each node that draws on the host.

    A node's stream is one and the same in all forms in which its network is run. A stream whose state was restored
    before its node was translated begins there.
    """

    def __init__(self) -> None:
        """Start without a stream."""
        self._streams: dict[str, np.random.RandomState] = {}
        self._saved: dict[str, Any] = {}
        self._seed: int | None = None

    def stream(self, name: str, seed: int | None) -> np.random.RandomState:
        """Return the stream of a node.

        Args:
            name: The node's name.
            seed: What it begins with; ``None`` for a node without a seed, which begins anywhere unless :meth:`seed` was
                called.
        """
        if name not in self._streams:
            self._streams[name] = np.random.RandomState(self._first(name) if seed is None else seed % 2**32)
            if name in self._saved:
                self._streams[name].set_state(_legacy_state(name, self._saved.pop(name)))
        return self._streams[name]

    def seed(self, seed: int) -> None:
        """Let the nodes that have no seed draw what follows from this one; call it before the network is run."""
        self._seed = seed

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        drawn = {name: _as_state(stream) for name, stream in self._streams.items()}
        return {"streams": {**self._saved, **drawn}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is none.
        """
        streams = state.get("streams")
        if not isinstance(streams, Mapping):
            raise CheckpointError("The checkpoint holds no random streams of a network.")
        read = {name: _legacy_state(name, saved) for name, saved in streams.items()}
        self._saved = {name: streams[name] for name in read if name not in self._streams}
        for name in read.keys() & self._streams.keys():
            self._streams[name].set_state(read[name])

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Let nodes that are translated within the block draw from here."""
        token = _IN_USE.set(self)
        try:
            yield
        finally:
            _IN_USE.reset(token)

    def _first(self, name: str) -> Any:
        if self._seed is None:
            return None
        return random_stream(self._seed, "operator", name).integers(0, 2**32, size=4, dtype=np.uint32)


def streams_in_use() -> RandomStreams:
    """Return the streams of the executor that translates its network now; outside of one, new ones."""
    return _IN_USE.get() or RandomStreams()


def node_stream(outputs: tuple[str, ...], seed: int | None) -> np.random.RandomState:
    """Return the stream of a node that is being translated.

    Args:
        outputs: Names of its outputs, which tell it from all other nodes.
        seed: Its seed, ``None`` where it has none.
    """
    return streams_in_use().stream(next((name for name in outputs if name), ""), seed)


def _as_state(stream: np.random.RandomState) -> State:
    state = stream.get_state(legacy=False)
    assert isinstance(state, dict)
    return {
        "key": np.array(state["state"]["key"]),
        "position": int(state["state"]["pos"]),
        "has_gauss": int(state["has_gauss"]),
        "gauss": float(state["gauss"]),
    }


def _legacy_state(name: str, saved: Any) -> dict[str, Any]:
    """Return a stream's snapshot as NumPy takes it."""
    try:
        key = np.asarray(saved["key"], np.uint32)
        if key.shape != (624,):
            raise ValueError(f"its key has the shape {key.shape}")
        return {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": int(saved["position"])},
            "has_gauss": int(saved["has_gauss"]),
            "gauss": float(saved["gauss"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"The random stream {name!r} of the checkpoint cannot be read: {error}.") from error
