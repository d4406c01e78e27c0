"""One step of Adam as a single operator."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from deep500.core.errors import OperatorError
from deep500.core.texts import shown
from deep500.operators.custom.cpp_op import CppOp
from native_ops._checks import check_shape, differs, shape_text

__all__ = ["AdamStep"]


class AdamStep(CppOp):
    r"""One step of Adam, in a single pass over the parameter.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g, & v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g^2 \\
        \theta_t &= \theta_{t-1} -
        \alpha \frac{m_t}{1 - \beta_1^t} \Bigm/ \left(\sqrt{\frac{v_t}{1 - \beta_2^t}} + \epsilon\right)

    Inputs: the parameter :math:`\theta` and its gradient g of one shape and dtype, float32, float64, bfloat16 or
    float16; the moments m and v of the same shape, zeros before the first step, in the parameter's dtype, in float32
    where that has 16 bits; the number t of the step, int64, from 1, of shape ``[]`` or ``[1]``. Outputs: the new
    parameter, m and v. Not differentiable.

    The operations and their order are those of :class:`deep500.AdamOptimizer`: in float32 and float64, m and v are
    the same bit for bit, and the parameter as well. On a GPU a step below 1 gives NaN; on a processor it is an error.

    Example:
        >>> import numpy as np
        >>> zero = np.zeros(1)
        >>> parameter, m, v = AdamStep(learning_rate=0.1)(np.ones(1), np.full(1, 4.0), zero, zero, np.array(1))
        >>> parameter, m, v
        (array([0.9]), array([0.4]), array([0.016]))

    Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1.
    """

    name = "adam_step"
    source = "adam_step.cpp"
    cuda_source = "adam_step.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")
    # A product and a sum are rounded one by one, as NumPy and the frameworks do.
    flags = ("-ffp-contract=off",)
    cuda_flags = ("--fmad=false", "-Xcompiler=-ffp-contract=off")

    def __init__(
        self, *, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        r"""Set the attributes.

        Args:
            learning_rate: The step size :math:`\alpha`, from 0.
            beta1: Decay :math:`\beta_1` of the first moment, from 0 to below 1.
            beta2: Decay :math:`\beta_2` of the second moment, from 0 to below 1.
            epsilon: The constant :math:`\epsilon`, added after the root, from 0.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        super().__init__(
            learning_rate=_checked("learning_rate", learning_rate),
            beta1=_checked("beta1", beta1, 1.0),
            beta2=_checked("beta2", beta2, 1.0),
            epsilon=_checked("epsilon", epsilon),
        )

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return the parameter, its gradient, m, v and the step; see :meth:`CustomOp.example_inputs`."""
        shape = (1024, 1024) if large else (3, 4)
        parameter, gradient, m = (rng.standard_normal(shape) for _ in range(3))
        return [parameter, gradient, 0.1 * m, np.square(rng.uniform(0.1, 1.0, shape)), np.array(3)]

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shapes and dtypes of the new parameter, m and v.

        Raises:
            OperatorError: The shapes differ, or the step is no single number.
        """
        parameter, *others, step = shapes
        for name, shape in zip(("the gradient", "m", "v"), others):
            check_shape("adam_step", name, shape, parameter, ", that of the parameter")
        if len(step) > 1 or any(differs(size, 1) for size in step):
            raise OperatorError(f"adam_step: step has the shape {shape_text(step)}; accepted are [] and [1].")
        return [parameter] * 3, [dtypes[0], dtypes[2], dtypes[3]]


def _checked(name: str, value: Any, bound: float = math.inf) -> float:
    """Return an attribute as it is given, not rounded to float32: the optimizer's are not either."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 <= float(value) < bound:
        accepted = "a finite number from 0" if bound == math.inf else f"a number from 0 to below {bound:g}"
        raise OperatorError(f"adam_step: the attribute {name} is {shown(value)}; accepted is {accepted}.")
    return float(value)
