"""ONNX Dropout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deep500.core.errors import OperatorError
from deep500.operators import attributes
from deep500.operators.library._tensors import check_dtypes, compute_dtype, present, returned, take_inputs
from deep500.operators.operator import Array, Operator, OptionalArray

__all__ = ["Dropout"]

_NAME = "Dropout"


class Dropout(Operator):
    r"""In training, set elements to 0 at random and scale the others, so that the expectation stays.

    .. math::
        y = \frac{\text{mask}}{1 - \text{ratio}} \cdot x

    Inputs: data, float16, bfloat16, float32 or float64; optionally ratio, a float scalar from 0 to 1 (exclusive), by
    default 0.5, and training_mode, a bool. Outputs, always both: y, and mask, bool, true where an element stays.
    Without training y is the data, and the mask true.

    With a seed every call draws the same mask, that of ONNX' reference. The backward takes the mask from the forward's
    outputs, or draws it again from the seed.

    Source: ONNX Dropout, version 22; N. Srivastava et al., Dropout, JMLR 15 (2014).
    """

    def __init__(self, *, seed: int | None = None, training_mode: int | None = None) -> None:
        """Set the attributes.

        Args:
            seed: Seed of the mask; by default every call draws another one.
            training_mode: Whether anything is dropped, where the network's mode says so; by default the third input
                does.

        Raises:
            OperatorError: An attribute is not what is accepted.
        """
        self.seed = None if seed is None else attributes.integer(_NAME, "seed", seed)
        self.training_mode = None if training_mode is None else attributes.flag(_NAME, "training_mode", training_mode)

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Compute y and mask.

        Raises:
            OperatorError: The data is not of floats, or ratio or training_mode are not what is accepted.
        """
        x, ratio = self._read(inputs)
        if not ratio:
            return x.copy(), np.ones(x.shape, np.bool_)
        mask = self._mask(x.shape, ratio)
        return _scaled(x, mask, ratio), mask

    def backward(
        self, grads: Sequence[OptionalArray], fwd_inputs: Sequence[OptionalArray], fwd_outputs: Sequence[OptionalArray]
    ) -> tuple[OptionalArray, ...]:
        """Compute the gradient by the data.

        Raises:
            OperatorError: The mask was neither kept nor drawn from a seed.
        """
        if grads[0] is None:
            return (None,) * len(fwd_inputs)
        x, ratio = self._read(fwd_inputs)
        gradient = np.asarray(grads[0])
        if not ratio:
            return returned([gradient.copy(), None, None], fwd_inputs)
        mask = fwd_outputs[1] if len(fwd_outputs) > 1 else None
        if mask is None:
            if self.seed is None:
                raise OperatorError(
                    f"{_NAME}: the backward received no mask; accepted are both outputs of the forward, or a seed."
                )
            mask = self._mask(x.shape, ratio)
        return returned([_scaled(gradient, np.asarray(mask), ratio), None, None], fwd_inputs)

    def _mask(self, shape: tuple[int, ...], ratio: float) -> Array:
        seed = None if self.seed is None else self.seed % 2**32
        return np.asarray(np.random.RandomState(seed).uniform(0, 1, shape) >= ratio)

    def _read(self, inputs: Sequence[OptionalArray]) -> tuple[Array, float]:
        """Check the inputs; return the data, and the ratio, 0 where nothing is dropped."""
        received = take_inputs(_NAME, inputs, ["data"], ["ratio", "training_mode"])
        x, ratio, flag = present(received[0]), received[1], received[2]
        check_dtypes(_NAME, ["data"], [x], "floats")
        check_dtypes(_NAME, ["ratio"], [ratio], "floats")
        if flag is not None and (flag.dtype != np.bool_ or flag.size != 1):
            raise OperatorError(
                f"{_NAME}: received training_mode of {flag.dtype} and shape {flag.shape}; accepted is a bool scalar."
            )
        trains = flag is not None and bool(flag.reshape(-1)[0]) if self.training_mode is None else self.training_mode
        if ratio is not None and ratio.size != 1:
            raise OperatorError(f"{_NAME}: received ratio of shape {ratio.shape}; accepted is a scalar, shape ().")
        share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
        if not trains:
            return x, 0.0
        if not 0 <= share < 1:
            raise OperatorError(f"{_NAME}: received the ratio {share}; accepted is 0 to 1, 1 excluded.")
        return x, share


def _scaled(x: Array, mask: Array, ratio: float) -> Array:
    """Return what stays, scaled; a dropped element is 0 even when it is infinite."""
    wide = compute_dtype(x.dtype)
    kept = np.where(mask, x.astype(wide, copy=False), wide.type(0))
    return np.asarray(kept * wide.type(1 / (1 - ratio))).astype(x.dtype, copy=False)
