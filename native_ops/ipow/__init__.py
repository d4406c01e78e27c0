"""Powers with a whole exponent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deep500.operators import attributes
from deep500.operators.custom.cpp_op import CppOp

__all__ = ["IPow"]


class IPow(CppOp):
    r"""A power with a whole exponent, by squaring and multiplying.

    .. math::
        y = x^n, \qquad \frac{\partial y}{\partial x} = n\, x^{n - 1}

    Input x of any shape, float32, float64, bfloat16 or float16; output y like x. 16-bit floats are computed in float32.
    A negative power is :math:`1 / x^{|n|}`; where that is below the smallest normal number it may be 0, for
    :math:`x^{|n|}` is infinite. :math:`x^0` is 1 and its derivative 0 for every x, 0 and NaN among them. There are
    second derivatives.

    Example:
        >>> import numpy as np
        >>> IPow(power=3)(np.array([2.0, -1.0]))
        array([ 8., -1.])

    Source: D. E. Knuth, The Art of Computer Programming, volume 2, section 4.6.3 (the binary method).
    """

    name = "ipow"
    source = "ipow.cpp"
    cuda_source = "ipow.cu"
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def __init__(self, *, power: int) -> None:
        """Set the exponent.

        Args:
            power: The exponent n; any whole number.

        Raises:
            OperatorError: It is no whole number.
        """
        super().__init__(power=attributes.integer("ipow", "power", power))

    def example_inputs(self, rng: np.random.Generator, dtype: str, large: bool = False) -> list[Any]:
        """Return x, away from 0; see :meth:`CustomOp.example_inputs`."""
        return [rng.uniform(0.5, 1.5, (1024, 1024) if large else (3, 4)) * rng.choice([-1.0, 1.0])]

    def framework_function(self, framework: str) -> Callable[..., Any]:
        """Return ``x**power``, which every framework has; see :meth:`CustomOp.framework_function`."""
        power = self._given["power"]
        return lambda x: x**power

    def infer(self, shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
        """Return shape and dtype of y: those of x."""
        return [shapes[0]], [dtypes[0]]
