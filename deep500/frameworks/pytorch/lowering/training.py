"""Steps of optimizers, for any number of tensors at once."""

from __future__ import annotations

from typing import Any

import torch

from deep500.frameworks.pytorch.lowering import lowerings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []

_DOMAIN = "ai.onnx.preview.training"


def _groups(tensors: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    """Return what belongs together of ``[X1, X2, ..., G1, G2, ..., V1, V2, ...]``: ``(X1, G1, V1)`` and so on."""
    count = len(tensors) // size
    return [tensors[index::count] for index in range(count)]


def _joined(results: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Undo :func:`_groups`."""
    return tuple(value for column in zip(*results) for value in column)


@lowerings.register("Adagrad", since=1, domain=_DOMAIN)
def adagrad(node: OperatorNode, rate: torch.Tensor, count: torch.Tensor, *tensors: torch.Tensor) -> tuple[Any, ...]:
    """``H' = H + G**2``, ``X' = X - R / (1 + T decay) G / (sqrt(H') + epsilon)``; G with the gradient of the norm.

    Source: ONNX ai.onnx.preview.training Adagrad-1.
    """
    decay, epsilon = node.attributes.get("decay_factor", 0.0), node.attributes.get("epsilon", 1e-6)
    norm = node.attributes.get("norm_coefficient", 0.0)
    step = torch.reshape(rate, ()) / (torch.reshape(count, ()) * decay + 1.0)
    results = []
    for x, gradient, squares in _groups(tensors, 3):
        regularised = x * norm + gradient
        next_squares = squares + regularised * regularised
        next_x = x - regularised * step / (torch.sqrt(next_squares) + epsilon)
        results.append((next_x.type_as(x), next_squares.type_as(squares)))
    return _joined(results)


@lowerings.register("Adam", since=1, domain=_DOMAIN)
def adam(node: OperatorNode, rate: torch.Tensor, count: torch.Tensor, *tensors: torch.Tensor) -> tuple[Any, ...]:
    """``V' = alpha V + (1 - alpha) G``, ``H' = beta H + (1 - beta) G**2``, ``X' = X - R' V' / (sqrt(H') + epsilon)``.

    ``R' = R sqrt(1 - beta**T) / (1 - alpha**T)`` for positive T, else R; G with the gradient of the norm.

    Source: ONNX ai.onnx.preview.training Adam-1.
    """
    alpha, beta = node.attributes.get("alpha", 0.9), node.attributes.get("beta", 0.999)
    epsilon, norm = node.attributes.get("epsilon", 1e-6), node.attributes.get("norm_coefficient", 0.0)
    kept = 1.0 - node.attributes.get("norm_coefficient_post", 0.0)
    rate, steps = torch.reshape(rate, ()), torch.reshape(count, ()).to(torch.float64)
    correction = torch.sqrt(1.0 - torch.pow(beta, steps)) / (1.0 - torch.pow(alpha, steps))
    step = torch.where(steps > 0, rate * correction, rate)
    results = []
    for x, gradient, means, squares in _groups(tensors, 4):
        regularised = x * norm + gradient
        next_means = means * alpha + regularised * (1.0 - alpha)
        next_squares = squares * beta + regularised * regularised * (1.0 - beta)
        next_x = (x - next_means / (torch.sqrt(next_squares) + epsilon) * step) * kept
        results.append((next_x.type_as(x), next_means.type_as(means), next_squares.type_as(squares)))
    return _joined(results)


@lowerings.register("Momentum", since=1, domain=_DOMAIN)
def momentum(node: OperatorNode, rate: torch.Tensor, count: torch.Tensor, *tensors: torch.Tensor) -> tuple[Any, ...]:
    """``V' = alpha V + beta G``, ``X' = X - R V'``, or with Nesterov's momentum ``X' = X - R (G + alpha V')``.

    At T = 0, ``beta`` is 1; G with the gradient of the norm.

    Source: ONNX ai.onnx.preview.training Momentum-1.
    """
    alpha, norm = node.attributes["alpha"], node.attributes["norm_coefficient"]
    rate = torch.reshape(rate, ())
    beta = torch.where(torch.reshape(count, ()) > 0, node.attributes["beta"], 1.0)
    results = []
    for x, gradient, moved in _groups(tensors, 3):
        regularised = x * norm + gradient
        next_moved = moved * alpha + regularised * beta
        direction = regularised + next_moved * alpha if node.attributes["mode"] == "nesterov" else next_moved
        results.append(((x - direction * rate).type_as(x), next_moved.type_as(moved)))
    return _joined(results)
