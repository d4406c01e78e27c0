"""TensorFlow's deterministic mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

# TensorFlow's public face has a switch to turn the mode on, and none to ask for it or to turn it off again.
from tensorflow.python.framework import config as _config

__all__ = ["deterministic_operators"]


@contextlib.contextmanager
def deterministic_operators(seed: int) -> Iterator[dict[str, Any]]:
    """Let TensorFlow use kernels alone that give equal bits in equal runs, for the time of a block.

    An operator that has none raises an error when it is run. The switch is that of the whole process; afterwards it is
    as it was.

    Source: TensorFlow's documentation of ``tf.config.experimental.enable_op_determinism``.

    Args:
        seed: What TensorFlow's global seed is set to where none is set: the mode refuses to draw without a seed.

    Yields:
        What is switched to what, in JSON's types.
    """
    was_on = _config.is_op_determinism_enabled()
    lacks_seed = tf.compat.v1.random.get_seed(None)[0] is None
    if lacks_seed:
        tf.random.set_seed(seed)
    tf.config.experimental.enable_op_determinism()
    try:
        yield {
            "tf.config.experimental.enable_op_determinism": True,
            "tf.random.set_seed": seed if lacks_seed else None,
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        }
    finally:
        if not was_on:
            _config.disable_op_determinism()
        if lacks_seed:
            tf.random.set_seed(None)
