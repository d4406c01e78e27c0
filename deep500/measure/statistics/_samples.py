"""What is asked of samples before any statistic looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import MeasurementError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["check_confidence", "finite_samples"]


def finite_samples(samples: ArrayLike, *, least: int = 1, what: str = "samples") -> NDArray[np.float64]:
    """Return one row of finite float64 samples.

    Args:
        samples: The samples, in any unit.
        least: How many there must be.
        what: What they are called in messages.

    Raises:
        MeasurementError: They are not one row, too few, NaN or infinite.
    """
    row = np.asarray(samples, dtype=np.float64)
    if row.ndim != 1:
        raise MeasurementError(f"One row of {what} is needed, the shape is {row.shape}.")
    if len(row) < least:
        raise MeasurementError(f"There are {len(row)} {what}; at least {least} are needed.")
    unusable = len(row) - int(np.isfinite(row).sum())
    if unusable:
        raise MeasurementError(f"{unusable} of {len(row)} {what} are NaN or infinite; measure them again.")
    return row


def check_confidence(confidence: float) -> float:
    """Return a confidence that lies between 0 and 1.

    Raises:
        MeasurementError: It does not.
    """
    if not 0 < confidence < 1:
        raise MeasurementError(f"A confidence lies between 0 and 1, such as 0.95; it is {confidence!r}.")
    return confidence
