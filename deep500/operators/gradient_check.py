"""Numerical derivatives of an operator, and how far its own gradients are from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["ROUND_OFF_STEP", "max_gradient_error", "numerical_gradient"]

#: Step of the central difference relative to the size of a value: the cube root of float64's precision. The error of
#: the difference, h^2 f'''/6, and that of rounding, eps f / h, are then of one order, about 4e-11.
ROUND_OFF_STEP = float(np.finfo(np.float64).eps ** (1 / 3))


def numerical_gradient(
    operator: Operator,
    inputs: Sequence[OptionalArray],
    output_grads: Sequence[OptionalArray],
    index: int,
    *,
    step: float = ROUND_OFF_STEP,
) -> Array:
    r"""Return the gradient of :math:`L = \sum_i \langle g_i, y_i \rangle` by one input, by central differences.

    .. math::
        \frac{\partial L}{\partial x_k} \approx \sum_i \Bigl\langle g_i,
        \frac{y_i(x + h e_k) - y_i(x - h e_k)}{2h} \Bigr\rangle, \qquad h = \text{step} \cdot \max(1, |x_k|)

    Args:
        operator: The operator; it is run twice for every element of the input.
        inputs: Its inputs, floats as float64. They are not modified.
        output_grads: :math:`g_i` for every output; ``None`` for those on which L does not depend.
        index: Which input to differentiate by.
        step: Step relative to the size of a value.

    Returns:
        float64, of the input's shape.

    Raises:
        OperatorError: The input is absent or not float64.
    """
    given = inputs[index]
    if given is None or given.dtype != np.float64:
        received = "absent" if given is None else f"of {given.dtype}"
        raise OperatorError(f"Input {index} of {type(operator).__name__} is {received}; accepted is float64.")
    result = np.zeros(given.shape)
    for place in np.ndindex(given.shape):
        value = float(given[place])
        width = step * max(1.0, abs(value))
        sides = []
        for moved in (value + width, value - width):
            x = given.copy()
            x[place] = moved
            sides.append((float(x[place]), operator.forward([*inputs[:index], x, *inputs[index + 1 :]])))
        (high, above), (low, below) = sides
        pairs = zip(output_grads, above, below, strict=False)
        result[place] = sum(_difference(g, a, b) for g, a, b in pairs if g is not None) / (high - low)
    return result


def max_gradient_error(
    operator: Operator,
    inputs: Sequence[OptionalArray],
    *,
    skip_inputs: Collection[int] = (),
    skip_outputs: Collection[int] = (),
    step: float = ROUND_OFF_STEP,
    seed: int = 0,
) -> float:
    r"""Return the largest relative error of an operator's gradients against numerical derivatives, in float64.

    Float inputs are converted to float64 first. For random :math:`g_i`, uniform in [-1, 1], the gradient that
    ``backward`` returns for every float input is compared with :func:`numerical_gradient`:

    .. math::
        \max_j \frac{\lVert a_j - n_j \rVert_\infty}{\max(\lVert a_j \rVert_\infty, \lVert n_j \rVert_\infty, 1)}

    so that for gradients below 1 the error is absolute. ``None`` for a float input counts as a gradient of zeros, and a
    gradient for an integer input as an error of infinity, as does NaN in only one of the two.

    A correct operator that is smooth near the inputs has an error of about 1e-9 and, away from points where third
    derivatives are large, less than 1e-7. Keep inputs further than ``step`` from kinks (0 of Relu, ties of MaxPool),
    where the derivative does not exist.

    Args:
        operator: The operator to check.
        inputs: Its inputs; integer inputs stay as they are.
        skip_inputs: Indices of float inputs by which the operator is not differentiable by agreement, such as the
            statistics of BatchNormalization.
        skip_outputs: Indices of outputs through which gradients do not flow, such as its running statistics.
        step: Step of the central difference relative to the size of a value.
        seed: Seed of :math:`g_i`.

    Returns:
        The error; 0 if there is no float input.

    Raises:
        OperatorError: ``backward`` returns the wrong number of gradients, or one of the wrong shape or dtype.

    Example:
        >>> from deep500.operators.library.mul import Mul
        >>> max_gradient_error(Mul(), [np.array([1.0, 2.0]), np.array(3.0)]) < 1e-7
        True
    """
    wide = [None if x is None else _as_float64(np.asarray(x)) for x in inputs]
    outputs = operator.forward(wide)
    grads = _random_gradients(outputs, skip_outputs, seed)
    analytic = operator.backward(grads, wide, outputs)
    _check_gradients(type(operator).__name__, analytic, wide)
    worst = 0.0
    for i, (x, gradient) in enumerate(zip(wide, analytic, strict=True)):
        if i in skip_inputs or x is None:
            continue
        if x.dtype != np.float64:
            worst = worst if gradient is None else np.inf
            continue
        numerical = numerical_gradient(operator, wide, grads, i, step=step)
        worst = max(worst, _relative_error(np.zeros_like(x) if gradient is None else gradient, numerical))
    return worst


def _random_gradients(outputs: Sequence[Array], skipped: Collection[int], seed: int) -> list[OptionalArray]:
    rng = np.random.default_rng(seed)
    grads: list[OptionalArray] = [np.asarray(rng.uniform(-1.0, 1.0, y.shape)) for y in outputs]
    return [None if i in skipped or outputs[i].dtype != np.float64 else g for i, g in enumerate(grads)]


def _check_gradients(name: str, gradients: Sequence[OptionalArray], inputs: Sequence[OptionalArray]) -> None:
    """Check that there is one gradient for every input, in its shape and dtype."""
    if len(gradients) != len(inputs):
        counts = f"{len(gradients)} gradients for {len(inputs)} inputs"
        raise OperatorError(f"{name}.backward returned {counts}; accepted is one for every input.")
    for i, (x, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        if x is None or gradient is None or x.dtype != np.float64:
            continue
        if (gradient.shape, gradient.dtype) != (x.shape, x.dtype):
            raise OperatorError(
                f"{name}.backward returned a gradient of {gradient.dtype} and shape {gradient.shape} by input {i}; "
                f"accepted is the input's: {x.dtype} and {x.shape}."
            )


def _difference(gradient: Array, above: Array, below: Array) -> float:
    """Return the change of L; outputs that do not depend on the element contribute exactly 0, infinite ones too."""
    change = np.subtract(above, below, out=np.zeros_like(above), where=above != below)
    return float(np.sum(gradient * change))


def _as_float64(x: Array) -> Array:
    return x if x.dtype.kind in "biu" else x.astype(np.float64)


def _relative_error(a: Array, b: Array) -> float:
    if a.size == 0:
        return 0.0
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return 0.0 if np.array_equal(a, b, equal_nan=True) else np.inf
    scale = max(float(np.abs(a).max()), float(np.abs(b).max()), 1.0)
    return float(np.abs(a - b).max()) / scale
