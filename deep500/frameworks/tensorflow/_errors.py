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
    OperatorError,
    UnsupportedOperatorError,
)

__all__ = ["explain_run", "explain_trace", "operator_error", "reason", "traced_errors"]

#: What a custom operator says, from its name to what TensorFlow adds: where it happened, or Python's traceback.
_OPERATOR_MESSAGE = re.compile(r"Deep500 operator '.*?(?=\s*(?:\[Op:|\[\[|\]\s|Traceback \(most|$))", re.DOTALL)


class TracedOperatorError(OperatorError):
    """An operator cannot be added to the graph that is being traced."""

    # AutoGraph, through which errors of traced functions pass, keeps only types that have this constructor.
    __init__ = Exception.__init__


@contextlib.contextmanager
def traced_errors() -> Iterator[None]:
    """Let errors of operators keep their type on their way out of a ``tf.function``.

    Raises:
        OperatorError: What was raised.
    """
    try:
        yield
    except OperatorError as error:
        if tf.executing_eagerly():
            raise
        raise TracedOperatorError(str(error)) from error


def operator_error(name: str, error: tf.errors.OpError) -> Deep500Error:
    """Return what TensorFlow raised when a custom operator was called as an error of Deep500."""
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return DeviceError(f"The device has not enough memory for the operator {name!r}: {reason(error)}")
    said = _OPERATOR_MESSAGE.search(str(error.message))
    return OperatorError(" ".join(said[0].split()) if said else f"TensorFlow cannot run {name!r}: {reason(error)}")


@contextlib.contextmanager
def explain_run(network: str) -> Iterator[None]:
    """Turn what TensorFlow finds wrong while it runs a network into errors of Deep500.

    Raises:
        DeviceError: The device has not enough memory, or failed.
        InvalidInputError: An operation refuses its inputs.
        OperatorError: A custom operator failed.
        UnsupportedOperatorError: There is no kernel for an operation, its dtypes and the device.
    """
    try:
        yield
    except tf.errors.OpError as error:
        why = reason(error)
        if _OPERATOR_MESSAGE.search(str(error.message)):
            raise operator_error(network, error) from error
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
