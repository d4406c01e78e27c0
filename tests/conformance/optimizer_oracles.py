"""The published formula of every optimizer, in NumPy and float64, written apart from the library.

An oracle is called once a step with the parameters and the function that is made small (its value and gradients at any
parameters), and returns the next parameters. Formulas are written as their papers print them, or solved in another way
(Muon by singular values, L-BFGS by a dense matrix), never by the library's own helpers.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import line_search

__all__ = ["CASES", "Case", "Oracle", "oracle_of"]

Values = dict[str, np.ndarray]

#: Returns the loss and its gradients at given parameters.
Function = Callable[[Values], tuple[float, Values]]

Oracle = Callable[[Values, Function], Values]

#: A formula of one parameter, ``(parameter, gradient, memory, t) -> next``; the memory is its own, empty at first.
Formula = Callable[[np.ndarray, np.ndarray, dict[str, Any], int], np.ndarray]


@dataclass(frozen=True)
class Case:
    """An optimizer with arguments, and what must come of it.

    Attributes:
        oracle: Makes the oracle, of the arguments.
        arguments: What the optimizer is made with, besides executor and loss.
        one_batch: Whether the optimizer needs the same minibatch each time: the whole data set. A line search on it
            makes rounding grow from step to step, so that the oracle starts each step at the optimizer's parameters.
    """

    oracle: Callable[..., Oracle]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    one_batch: bool = False

    def create_oracle(self) -> Oracle:
        """Return an oracle at its start."""
        return self.oracle(**self.arguments)


def elementwise(formula: Callable[..., Formula]) -> Callable[..., Oracle]:
    """Return an oracle that applies a formula to each parameter with its gradient."""

    @functools.wraps(formula)
    def create(**arguments: Any) -> Oracle:
        update = formula(**arguments)
        memories: dict[str, dict[str, Any]] = {}
        steps = 0

        def step(values: Values, function: Function) -> Values:
            nonlocal steps
            steps += 1
            gradients = function(values)[1]
            return {
                name: update(value, gradients[name], memories.setdefault(name, {}), steps)
                for name, value in values.items()
            }

        return step

    return create


@elementwise
def gradient_descent(learning_rate: float = 0.1) -> Formula:
    """Robbins and Monro 1951."""
    return lambda w, g, memory, t: w - learning_rate * g


@elementwise
def momentum(learning_rate: float = 0.01, momentum: float = 0.9, nesterov: bool = False) -> Formula:
    """Polyak 1964: all past gradients, each with its weight; Sutskever et al. 2013, equations 3 and 4."""

    def heavy_ball(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        past = memory.setdefault("past", [])
        past.append(g)
        return w - learning_rate * sum(momentum ** (t - 1 - i) * past[i] for i in range(t))

    def looking_ahead(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        # The gradient is taken at theta + mu v, and that point is what the network holds.
        v = memory.get("v", np.zeros_like(w))
        theta = w - momentum * v
        v = momentum * v - learning_rate * g
        theta = theta + v
        memory["v"] = v
        return theta + momentum * v

    return looking_ahead if nesterov else heavy_ball


@elementwise
def adagrad(learning_rate: float = 0.01, epsilon: float = 1e-10, initial_accumulator: float = 0.0) -> Formula:
    """Duchi et al. 2011."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        past = memory.setdefault("past", [])
        past.append(g)
        return w - learning_rate * g / (np.sqrt(initial_accumulator + np.sum(np.square(past), axis=0)) + epsilon)

    return update


@elementwise
def rmsprop(
    learning_rate: float = 0.001,
    decay: float = 0.9,
    epsilon: float = 1e-8,
    momentum: float = 0.0,
    centered: bool = False,
) -> Formula:
    """Tieleman and Hinton 2012; Graves 2013, equations 38 to 41, with epsilon after the root."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        n = memory["n"] = decay * memory.get("n", 0.0) + (1 - decay) * g**2
        mean = memory["mean"] = decay * memory.get("mean", 0.0) + (1 - decay) * g
        spread = np.clip(n - mean**2, 0.0, None) if centered else n
        b = memory["b"] = momentum * memory.get("b", 0.0) + g / (np.sqrt(spread) + epsilon)
        return w - learning_rate * b

    return update


def adam_direction(
    g: np.ndarray, memory: dict[str, Any], t: int, beta1: float, beta2: float, epsilon: float
) -> np.ndarray:
    """Kingma and Ba 2015, algorithm 1: the direction of a step."""
    m = memory["m"] = beta1 * memory.get("m", 0.0) + (1 - beta1) * g
    v = memory["v"] = beta2 * memory.get("v", 0.0) + (1 - beta2) * g**2
    return (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)


@elementwise
def adam(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> Formula:
    """Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        return w - learning_rate * (adam_direction(g, memory, t, beta1, beta2, epsilon) + weight_decay * w)

    return update


def adamw(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> Oracle:
    """Loshchilov and Hutter 2019, algorithm 2, with the decay that PyTorch has by default."""
    return adam(learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay)


@elementwise
def amsgrad(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    bias_correction: bool = False,
) -> Formula:
    """Reddi et al. 2018, algorithm 2."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        m = memory["m"] = beta1 * memory.get("m", 0.0) + (1 - beta1) * g
        v = memory["v"] = beta2 * memory.get("v", 0.0) + (1 - beta2) * g**2
        largest = memory["largest"] = np.maximum(memory.get("largest", 0.0), v)
        if bias_correction:
            m, largest = m / (1 - beta1**t), largest / (1 - beta2**t)
        return w - learning_rate * m / (np.sqrt(largest) + epsilon)

    return update


@elementwise
def lion(learning_rate: float = 1e-4, beta1: float = 0.9, beta2: float = 0.99, weight_decay: float = 0.0) -> Formula:
    """Chen et al. 2023, algorithm 2."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        m = memory.get("m", np.zeros_like(w))
        memory["m"] = beta2 * m + (1 - beta2) * g
        return w - learning_rate * (np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * w)

    return update


def length(x: np.ndarray) -> float:
    """Return the 2-norm of all elements."""
    return float(np.linalg.norm(np.ravel(x)))


@elementwise
def lars(
    learning_rate: float = 0.01, momentum: float = 0.9, weight_decay: float = 0.0005, trust: float = 0.001
) -> Formula:
    """You et al. 2017, algorithm 1."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        local = 1.0
        if length(w) and length(g):
            local = trust * length(w) / (length(g) + weight_decay * length(w))
        v = memory["v"] = momentum * memory.get("v", 0.0) + learning_rate * local * (g + weight_decay * w)
        return w - v

    return update


@elementwise
def lamb(
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    weight_decay: float = 0.01,
) -> Formula:
    """You et al. 2020, algorithm 2."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        r = adam_direction(g, memory, t, beta1, beta2, epsilon) + weight_decay * w
        ratio = length(w) / length(r) if length(w) and length(r) else 1.0
        return w - learning_rate * ratio * r

    return update


@elementwise
def muon(
    learning_rate: float = 0.02,
    momentum: float = 0.95,
    nesterov: bool = True,
    iterations: int = 5,
    weight_decay: float = 0.0,
    adam_ratio: float = 0.015,
    beta1: float = 0.9,
    beta2: float = 0.95,
    epsilon: float = 1e-10,
) -> Formula:
    """Jordan et al. 2024: the iteration acts on each singular value by itself; AdamW for what is no matrix."""

    def update(w: np.ndarray, g: np.ndarray, memory: dict[str, Any], t: int) -> np.ndarray:
        if w.ndim < 2:
            direction = adam_ratio * adam_direction(g, memory, t, beta1, beta2, epsilon)
            return w - learning_rate * (direction + adam_ratio * weight_decay * w)
        past = memory.setdefault("past", [])
        past.append(g)
        b = sum(momentum ** (t - 1 - i) * past[i] for i in range(t))
        matrix = (g + momentum * b if nesterov else b).reshape(len(w), -1)
        u, s, v = np.linalg.svd(matrix, full_matrices=False)
        s = s / (np.sqrt(np.sum(s**2)) + 1e-7)
        for _ in range(iterations):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        rows, columns = matrix.shape
        direction = (max(1.0, rows / columns) ** 0.5 * (u * s) @ v).reshape(w.shape)
        return w - learning_rate * (direction + weight_decay * w)

    return update


def accelegrad(learning_rate: float = 1.0, diameter: float = 1.0, gradient_bound: float = 1.0) -> Oracle:
    """Levy et al. 2018, algorithm 2, each parameter by itself; the parameters of the network are the sequence y."""
    z: Values = {}
    history: list[tuple[float, Values]] = []

    def step(y: Values, function: Function) -> Values:
        t = len(history)
        alpha = 1.0 if t <= 2 else 0.25 * (t + 1)
        if not z:
            z.update(y)
        x = {name: z[name] / alpha + (1 - 1 / alpha) * y[name] for name in y}
        gradients = function(x)[1]
        history.append((alpha, gradients))
        following = {}
        for name, g in gradients.items():
            squares = sum(a**2 * length(past[name]) ** 2 for a, past in history)
            eta = learning_rate * 2 * diameter / np.sqrt(gradient_bound**2 + squares)
            z[name] = z[name] - alpha * eta * g
            following[name] = x[name] - eta * g
        return following

    return step


def sam(learning_rate: float = 0.1, rho: float = 0.05, base: Callable[..., Oracle] = momentum) -> Oracle:
    """Foret et al. 2021, algorithm 1 with p = 2: the base's step, by the gradient at the worst point nearby."""
    update = base(learning_rate=learning_rate)

    def step(values: Values, function: Function) -> Values:
        gradients = function(values)[1]
        norm = np.sqrt(sum(np.sum(g**2) for g in gradients.values()))
        worst = function({name: values[name] + rho * gradients[name] / norm for name in values})
        return update(values, lambda _: worst)

    return step


def lbfgs(
    learning_rate: float = 1.0,
    history_size: int = 10,
    decrease: float = 1e-4,
    curvature: float = 0.9,
) -> Oracle:
    """Nocedal and Wright 2006, equations 7.16, 7.17 and 7.20, with the whole matrix; SciPy's line search."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def step(values: Values, function: Function) -> Values:
        names = list(values)

        def split(x: np.ndarray) -> Values:
            sizes = np.cumsum([values[name].size for name in names])[:-1]
            return {n: part.reshape(values[n].shape) for n, part in zip(names, np.split(x, sizes), strict=True)}

        def at(x: np.ndarray) -> tuple[float, np.ndarray]:
            loss, gradients = function(split(x))
            return loss, np.concatenate([np.ravel(gradients[name]) for name in names])

        x = np.concatenate([np.ravel(values[name]) for name in names])
        g = at(x)[1]
        inverse = np.eye(len(x))
        if pairs:
            s, y = pairs[-1]
            inverse *= (s @ y) / (y @ y)
        for s, y in pairs[-history_size:]:
            v = np.eye(len(x)) - np.outer(y, s) / (y @ s)
            inverse = v.T @ inverse @ v + np.outer(s, s) / (y @ s)
        direction = -learning_rate * inverse @ g
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = line_search(lambda p: at(p)[0], lambda p: at(p)[1], x, direction, g, c1=decrease, c2=curvature)
        following = x + found[0] * direction
        pairs.append((following - x, at(following)[1] - g))
        x = following
        return split(x)

    return step


#: By the name of the optimizer's file: the cases in which it must equal its formula. The first has its defaults.
CASES: dict[str, list[Case]] = {
    "gradient_descent": [Case(gradient_descent)],
    "momentum": [
        Case(momentum),
        Case(momentum, {"learning_rate": 0.1, "momentum": 0.5}),
        Case(momentum, {"nesterov": True}),
    ],
    "adagrad": [Case(adagrad), Case(adagrad, {"learning_rate": 0.1, "epsilon": 1e-3, "initial_accumulator": 0.1})],
    "rmsprop": [
        Case(rmsprop),
        Case(rmsprop, {"centered": True}),
        Case(rmsprop, {"decay": 0.99, "momentum": 0.9, "epsilon": 1e-4}),
        Case(rmsprop, {"momentum": 0.5, "centered": True}),
    ],
    "adam": [Case(adam), Case(adam, {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4})],
    "adamw": [Case(adamw), Case(adamw, {"learning_rate": 0.02, "weight_decay": 0.3})],
    "amsgrad": [Case(amsgrad), Case(amsgrad, {"beta2": 0.9}), Case(amsgrad, {"beta2": 0.9, "bias_correction": True})],
    "lion": [Case(lion), Case(lion, {"learning_rate": 0.01, "beta2": 0.8, "weight_decay": 0.1})],
    "lars": [Case(lars), Case(lars, {"learning_rate": 1.0, "trust": 0.02, "weight_decay": 0.1})],
    "lamb": [Case(lamb), Case(lamb, {"learning_rate": 0.02, "beta2": 0.9, "weight_decay": 0.0})],
    "muon": [Case(muon), Case(muon, {"nesterov": False, "iterations": 3, "weight_decay": 0.1, "adam_ratio": 0.5})],
    "accelegrad": [Case(accelegrad), Case(accelegrad, {"learning_rate": 0.3, "diameter": 0.5, "gradient_bound": 2.0})],
    "sam": [Case(sam), Case(sam, {"learning_rate": 0.02, "rho": 0.2})],
    "lbfgs": [
        Case(lbfgs, one_batch=True),
        Case(lbfgs, {"history_size": 3, "curvature": 0.5}, one_batch=True),
    ],
}


def oracle_of(optimizer: str) -> list[Case]:
    """Return the cases of an optimizer.

    Raises:
        AssertionError: There is no oracle yet; it says what to add.
    """
    assert optimizer in CASES, (
        f"deep500/training/optimizers/{optimizer}.py has no oracle. Write its published formula in "
        f"tests/conformance/optimizer_oracles.py, in NumPy and apart from the optimizer, as a function of the "
        f"optimizer's own arguments, and add CASES[{optimizer!r}] = [Case(formula), Case(formula, {{arguments}})]."
    )
    return CASES[optimizer]
