"""TensorFlow's random numbers for operators without a seed: from a stream that can be kept and continued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError
from deep500.core.stateful import State
from deep500.networks.random_streams import RandomStreams, streams_in_use

__all__ = ["TensorFlowStreams", "drawn_seed"]

#: Elements of the state of TensorFlow's Philox: a counter of two and a key.
_STATE_SHAPE = (3,)


class TensorFlowStreams(RandomStreams):
    """The streams of an executor: NumPy's on the host, and one of TensorFlow's own on the device.

    The kernels behind ``tf.random.uniform`` keep their place in the stream to themselves; a ``tf.random.Generator``
    keeps it in a variable. It begins with what ``tf.random.set_seed`` set, else anywhere.
    """

    def __init__(self) -> None:
        """Start without a stream."""
        super().__init__()
        self._generator: tf.random.Generator | None = None
        self._generator_state: NDArray[np.int64] | None = None

    def generator(self) -> tf.random.Generator:
        """Return the stream on the device, made when it is first asked for."""
        if self._generator is None:
            with tf.init_scope():  # a variable outlives the graph that is traced now
                if self._generator_state is not None:
                    self._generator = tf.random.Generator.from_state(self._generator_state, "philox")
                elif self._seed is not None:
                    self._generator = tf.random.Generator.from_seed(self._seed, "philox")
                else:
                    seeds = tf.compat.v1.random.get_seed(None)
                    self._generator = (
                        tf.random.Generator.from_non_deterministic_state("philox")
                        if seeds[0] is None
                        else tf.random.Generator.from_seed(seeds, "philox")
                    )
        return self._generator

    def seed(self, seed: int) -> None:
        """Seed the nodes that have no seed; see :meth:`RandomStreams.seed`."""
        super().seed(seed)
        if self._generator is not None:
            self._generator.reset_from_seed(seed)

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        state = self._generator_state if self._generator is None else self._generator.state.numpy()
        return {**super().state(), "generator": None if state is None else np.array(state)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot; see :meth:`RandomStreams.restore`."""
        if "generator" not in state:
            raise CheckpointError("The checkpoint holds no random stream of TensorFlow. Go on with its framework.")
        saved = state["generator"]
        is_state = isinstance(saved, np.ndarray) and saved.dtype == np.int64 and saved.shape == _STATE_SHAPE
        if saved is not None and not is_state:
            raise CheckpointError("The checkpoint holds no random stream of TensorFlow. Go on with its framework.")
        super().restore(state)
        if self._generator is not None and saved is not None:
            self._generator.state.assign(saved)
        self._generator_state = None if saved is None else np.array(saved)


def drawn_seed() -> tf.Tensor | None:
    """Return a new seed for a stateless operator each time that the graph which is traced now runs.

    ``None`` outside of an executor.
    """
    streams = streams_in_use()
    return streams.generator().make_seeds(1)[:, 0] if isinstance(streams, TensorFlowStreams) else None
