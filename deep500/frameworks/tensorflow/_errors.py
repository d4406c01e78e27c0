"""What TensorFlow raises, as errors of Deep500 that keep its reason."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from deep500.core.errors import (
    Deep500Error,
    DeviceError,
    InvalidInputError,
    InvalidNetworkError,
    UnsupportedOperatorError,
)

__all__ = ["explain_run", "explain_trace", "reason"]


@contextlib.contextmanager
def explain_run(network: str) -> Iterator[None]:
    """Turn what TensorFlow finds wrong while it runs a network into errors of Deep500.

    Raises:
        DeviceError: The device has not enough memory, or failed.
        InvalidInputError: An operation refuses its inputs.
        UnsupportedOperatorError: There is no kernel for an operation, its dtypes and the device.
    """
    try:
        yield
    except tf.errors.OpError as error:
        why = reason(error)
        unknown = isinstance(error, (tf.errors.UnimplementedError, tf.errors.NotFoundError))
        if unknown or "No OpKernel was registered" in why:
            raise UnsupportedOperatorError(f"TensorFlow has no kernel to run {network!r}: {why}") from error
        if "only integer div and mod should have errors" in why:
            # An internal error, for TensorFlow; it has found that an integer was divided by zero.
            raise InvalidInputError(
                f"TensorFlow cannot run {network!r} on these inputs: integer division by zero. {why}"
            ) from error
        if isinstance(error, (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)):
            raise InvalidInputError(f"TensorFlow cannot run {network!r} on these inputs: {why}") from error
        if isinstance(error, tf.errors.ResourceExhaustedError):
            raise DeviceError(f"The device has not enough memory to run {network!r}: {why}") from error
        raise DeviceError(f"TensorFlow failed to run {network!r} ({type(error).__name__}): {why}") from error


@contextlib.contextmanager
def explain_trace(loss: str) -> Iterator[None]:
    """Turn what TensorFlow finds wrong while it differentiates a loss into errors of Deep500.

    Raises:
        InvalidNetworkError: The loss cannot be differentiated.
        UnsupportedOperatorError: TensorFlow has no derivative of an operation.
    """
    try:
        yield
    except Deep500Error:
        raise
    except LookupError as error:
        raise UnsupportedOperatorError(
            f"TensorFlow has no derivative of an operation that {loss!r} depends on: {reason(error)}"
        ) from error
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise InvalidNetworkError(f"TensorFlow cannot differentiate {loss!r}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Return what TensorFlow says, and of which operation, without the places in our sources that it adds."""
    message = str(getattr(error, "message", "") or error)
    node = re.search(r"{{node (.+?)}}", message)
    told = (line.strip() for line in message.splitlines())
    added = ("File ", "Graph execution error", "Detected at node", "[[{{node")
    why = " ".join(line for line in told if line and not line.startswith(added))
    return f"{why} (at {node.group(1)})" if node else why
