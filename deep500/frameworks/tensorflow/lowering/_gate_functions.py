"""The activation functions that recurrent operators name in their attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.networks.operator_node import OperatorNode

__all__ = ["GateFunction", "read_gate_functions"]

GateFunction: TypeAlias = Callable[[tf.Tensor], tf.Tensor]

#: For each function its defaults of alpha and beta, ``None`` where it has none, and what it does with them.
_FUNCTIONS: dict[str, tuple[float | None, float | None, Callable[[tf.Tensor, Any, Any], tf.Tensor]]] = {
    "relu": (None, None, lambda x, alpha, beta: tf.nn.relu(x)),
    "tanh": (None, None, lambda x, alpha, beta: tf.math.tanh(x)),
    "sigmoid": (None, None, lambda x, alpha, beta: tf.math.sigmoid(x)),
    "softsign": (None, None, lambda x, alpha, beta: tf.nn.softsign(x)),
    "softplus": (None, None, lambda x, alpha, beta: tf.math.softplus(x)),
    "affine": (1.0, 0.0, lambda x, alpha, beta: alpha * x + beta),
    "leakyrelu": (0.01, None, lambda x, alpha, beta: tf.where(x >= 0, x, alpha * x)),
    "thresholdedrelu": (1.0, None, lambda x, alpha, beta: tf.where(x >= alpha, x, tf.zeros_like(x))),
    "scaledtanh": (1.0, 1.0, lambda x, alpha, beta: alpha * tf.math.tanh(beta * x)),
    "hardsigmoid": (0.2, 0.5, lambda x, alpha, beta: tf.clip_by_value(alpha * x + beta, 0, 1)),
    "elu": (1.0, None, lambda x, alpha, beta: tf.where(x >= 0, x, alpha * tf.math.expm1(tf.minimum(x, 0)))),
}


def read_gate_functions(node: OperatorNode, default: Sequence[str], directions: int) -> list[list[GateFunction]]:
    """Return the functions of each direction.

    Args:
        node: The node; ``activation_alpha`` and ``activation_beta`` hold values for those functions that take one, in
            the functions' order, and ``clip`` bounds what the functions are given.
        default: Names of one direction's functions.
        directions: Number of directions.

    Raises:
        OperatorError: A function is not known, or there are too few.
    """
    names = list(node.attributes.get("activations") or list(default) * directions)
    if len(names) != len(default) * directions:
        raise OperatorError(
            f"{node.label} names {len(names)} activations; accepted are {len(default)} for each of {directions} "
            f"directions."
        )
    alphas = list(node.attributes.get("activation_alpha") or [])
    betas = list(node.attributes.get("activation_beta") or [])
    clip = float(node.attributes.get("clip") or 0)
    functions = []
    for name in names:
        if name.lower() not in _FUNCTIONS:
            raise OperatorError(f"{node.label} names activation {name!r}; accepted are {', '.join(_FUNCTIONS)}.")
        alpha, beta, function = _FUNCTIONS[name.lower()]
        if alpha is not None and alphas:
            alpha = alphas.pop(0)
        if beta is not None and betas:
            beta = betas.pop(0)
        functions.append(_bound(function, alpha, beta, clip))
    count = len(default)
    return [functions[start : start + count] for start in range(0, len(functions), count)]


def _bound(function: Callable[..., tf.Tensor], alpha: float | None, beta: float | None, clip: float) -> GateFunction:
    def bound(x: tf.Tensor) -> tf.Tensor:
        return function(tf.clip_by_value(x, -clip, clip) if clip > 0 else x, alpha, beta)

    return bound
