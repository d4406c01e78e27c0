"""ONNX Runtime's deterministic mode."""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Iterator
from typing import Any

import onnxruntime as ort

__all__ = ["deterministic_operators", "is_deterministic"]

_IS_ON: contextvars.ContextVar[bool] = contextvars.ContextVar("_IS_ON", default=False)


@contextlib.contextmanager
def deterministic_operators(seed: int) -> Iterator[dict[str, Any]]:
    """Let sessions that are made within a block use kernels alone that give equal bits in equal runs.

    Networks are translated when they are first run, so that the mode is to begin before.

    Source: ONNX Runtime's ``SessionOptions.use_deterministic_compute`` and ``onnxruntime.set_seed``.

    Args:
        seed: Seed of the operators that have none, for the whole process from now on.

    Yields:
        What is switched to what, in JSON's types.
    """
    ort.set_seed(seed % 2**63)
    token = _IS_ON.set(True)
    try:
        yield {
            "SessionOptions.use_deterministic_compute": True,
            "onnxruntime.set_seed": seed % 2**63,
            "threads": int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))),
        }
    finally:
        _IS_ON.reset(token)


def is_deterministic() -> bool:
    """Whether a session that is made now is to be deterministic."""
    return _IS_ON.get()
