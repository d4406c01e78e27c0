"""How far results are from those of the NumPy reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import MeasurementError
from deep500.measure.metric import Direction
from deep500.measure.metrics.l2_error import L2Error
from deep500.measure.workload import Score

__all__ = ["error_score", "relative_l2_error"]


def error_score(name: str, values: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> Score:
    """Return :func:`relative_l2_error` as a score, of which less is better."""
    return Score(name, relative_l2_error(values, expected), direction=Direction.LOWER)


def relative_l2_error(values: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> float:
    r"""Return the distance of tensors from the expected ones, relative to the size of these.

    .. math:: \frac{\lVert v - e \rVert_2}{\lVert e \rVert_2}

    All tensors together are one vector: a gradient that is zero but for rounding, such as that of a bias before a
    normalisation, counts as much as it is worth. The denominator is over finite elements; where they are all zero, the
    distance itself is returned.

    Raises:
        MeasurementError: A tensor is finite where it should not be, or the other way round: there is no distance then.
        InvalidInputError: A tensor has another shape than is expected.
    """
    distance = L2Error().measure(None, list(values), list(expected))
    if not math.isfinite(distance):
        raise MeasurementError(
            "Elements of the results are not finite where those of the NumPy reference are, or the other way round: "
            f"the distance is {distance}."
        )
    wide = [np.asarray(tensor).astype(np.float64) for tensor in expected]
    size = math.hypot(*(float(np.linalg.norm(tensor[np.isfinite(tensor)])) for tensor in wide))
    return distance / size if size > 0.0 else distance
