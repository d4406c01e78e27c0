"""The activation functions that ONNX' recurrent operators name, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.operator import Array

__all__ = ["Activation", "Gated", "read_activations"]

_Function = Callable[[Array, float, float], Array]
_Slope = Callable[[Array, Array, float, float], Array]


class _Kind(NamedTuple):
    """A function of (x, alpha, beta), its slope of (x, y, alpha, beta), and defaults of the parameters that it has."""

    value: _Function
    slope: _Slope
    alpha: float | None = None
    beta: float | None = None


def _sigmoid(x: Array, _a: float = 0, _b: float = 0) -> Array:
    # The exponential of a negative number does not overflow.
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, small) / (1 + small))


_KINDS = {
    "Relu": _Kind(lambda x, a, b: np.maximum(x, 0), lambda x, y, a, b: (x > 0).astype(x.dtype)),
    "Tanh": _Kind(lambda x, a, b: np.tanh(x), lambda x, y, a, b: 1 - y * y),
    "Sigmoid": _Kind(_sigmoid, lambda x, y, a, b: y * (1 - y)),
    "Affine": _Kind(lambda x, a, b: a * x + b, lambda x, y, a, b: np.full_like(x, a), 1.0, 0.0),
    "LeakyRelu": _Kind(
        lambda x, a, b: np.where(x >= 0, x, a * x), lambda x, y, a, b: np.where(x >= 0, 1, a).astype(x.dtype), 0.01
    ),
    "ThresholdedRelu": _Kind(lambda x, a, b: np.where(x >= a, x, 0), lambda x, y, a, b: (x >= a).astype(x.dtype), 1.0),
    "ScaledTanh": _Kind(
        lambda x, a, b: a * np.tanh(b * x), lambda x, y, a, b: a * b * (1 - np.square(np.tanh(b * x))), 1.0, 1.0
    ),
    "HardSigmoid": _Kind(
        lambda x, a, b: np.clip(a * x + b, 0, 1),
        lambda x, y, a, b: np.where((y > 0) & (y < 1), a, 0).astype(x.dtype),
        0.2,
        0.5,
    ),
    "Elu": _Kind(
        lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        lambda x, y, a, b: np.where(x >= 0, 1, a * np.exp(np.minimum(x, 0))).astype(x.dtype),
        1.0,
    ),
    "Softsign": _Kind(lambda x, a, b: x / (1 + np.abs(x)), lambda x, y, a, b: 1 / np.square(1 + np.abs(x))),
    "Softplus": _Kind(lambda x, a, b: np.logaddexp(x, x.dtype.type(0)), lambda x, y, a, b: _sigmoid(x)),
}


class Gated(NamedTuple):
    """What an activation gave: its value, and the derivative by what went in."""

    value: Array
    slope: Array


class Activation(NamedTuple):
    """An activation with its parameters, before which values are limited.

    Attributes:
        name: Its name in ONNX.
        alpha: Its first parameter, where it has one.
        beta: Its second parameter, where it has one.
        clip: Values are limited to ``[-clip, clip]``; ``None`` for no limit.
    """

    name: str
    alpha: float
    beta: float
    clip: float | None

    def __call__(self, x: Array) -> Gated:
        """Return value and derivative."""
        kind = _KINDS[self.name]
        limited = x if self.clip is None else np.clip(x, -self.clip, self.clip)
        value = np.asarray(kind.value(limited, self.alpha, self.beta)).astype(x.dtype, copy=False)
        slope = np.asarray(kind.slope(limited, value, self.alpha, self.beta)).astype(x.dtype, copy=False)
        if self.clip is not None:
            slope = np.where(np.abs(x) <= self.clip, slope, x.dtype.type(0))
        return Gated(value, slope)


def read_activations(
    operator: str, names: Sequence[str], alphas: Sequence[Any] | None, betas: Sequence[Any] | None, clip: float | None
) -> tuple[Activation, ...]:
    """Return activations with their parameters, which those that have some take from the lists one after the other.

    Args:
        operator: Name of the operator, for the message.
        names: The functions' names in ONNX.
        alphas: First parameters; a function takes its default where there are none left.
        betas: Second parameters.
        clip: Limit of what goes into the functions.

    Raises:
        OperatorError: A name is not known, or there are more parameters than functions that have some.
    """
    left = [[float(np.float32(v)) for v in values or ()] for values in (alphas, betas)]
    result = []
    for name in names:
        if name not in _KINDS:
            raise OperatorError(
                f"{operator}: the attribute activations holds {name!r}; accepted are {', '.join(sorted(_KINDS))}."
            )
        parameters = []
        for default, values in zip(_KINDS[name][2:], left, strict=True):
            parameters.append(0.0 if default is None else values.pop(0) if values else default)
        result.append(Activation(name, parameters[0], parameters[1], clip))
    if any(left):
        raise OperatorError(
            f"{operator}: activation_alpha is {alphas!r} and activation_beta {betas!r} for {list(names)}; accepted is "
            f"one entry for each function that has such a parameter, in their order."
        )
    return tuple(result)
