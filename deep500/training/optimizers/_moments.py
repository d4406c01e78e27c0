"""Running moments of the gradient, which Adam and its relatives share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["moment_scalars", "moments"]


def moment_scalars(
    rate: float, beta1: float, beta2: float, epsilon: float, step: int, *, corrected: bool = True
) -> dict[str, float]:
    r"""Return the numbers of a step by the ratio of moments, with the correction of their bias in them.

    .. math::
        \alpha \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon} =
        \frac{\alpha c}{1 - \beta_1^t} \frac{m_t}{\sqrt{v_t} + c \epsilon}, \qquad c = \sqrt{1 - \beta_2^t}

    Args:
        rate: The step size.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: What is added to the corrected root.
        step: The number of the step, from 1.
        corrected: Whether the bias is corrected.
    """
    beta1, beta2 = float(beta1), float(beta2)
    root = math.sqrt(1.0 - beta2**step) if corrected else 1.0
    return {
        "beta1": beta1,
        "rest1": 1.0 - beta1,
        "beta2": beta2,
        "rest2": 1.0 - beta2,
        "rate": float(rate) * root / (1.0 - beta1**step if corrected else 1.0),
        "epsilon": float(epsilon) * root,
    }


def moments(gradient: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]) -> tuple[Any, Any]:
    r"""Return the next first and second moment.

    .. math::
        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2

    Args:
        gradient: The gradient :math:`g_t`.
        slots: ``first`` and ``second``, the moments of the step before.
        scalars: What :func:`moment_scalars` returned.
    """
    first = scalars["beta1"] * slots["first"] + scalars["rest1"] * gradient
    second = scalars["beta2"] * slots["second"] + scalars["rest2"] * (gradient * gradient)
    return first, second
