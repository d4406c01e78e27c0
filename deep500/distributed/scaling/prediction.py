"""What a scaling run would be on ranks that are not there, by closed forms with this machine's messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.distributed.simulation.calibration import Calibration, calibrate
from deep500.distributed.simulation.training_step import ScalingPoint, predict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deep500.distributed.scaling.design import ScalingDesign
    from deep500.distributed.simulation.cost_model import CostModel
    from deep500.distributed.simulation.training_step import ScalingMode, TrainingStep

__all__ = [
    "calibration_sizes",
    "calibration_to_dict",
    "doubts_of_calibration",
    "fit_messages",
    "predict_scaling",
    "predicted_algorithms",
    "predicted_ranks",
]

#: By scheme, the algorithms that its exchange may be carried out with; MPI does not say which it takes.
_ALGORITHMS: dict[str, tuple[str, ...]] = {
    "allreduce": ("ring_allreduce", "rabenseifner_allreduce", "recursive_doubling_allreduce"),
    "parameter_server": ("tree_allreduce", "central_parameter_server"),
    "consistent_neighbors": ("neighbour_exchange",),
    "dpsgd": ("neighbour_exchange",),
}

#: Of the times of a message the one that tells of the network rather than of what else the machine did.
_QUANTILE = 0.25

#: Messages beyond this cost seconds to calibrate with, and the line to them is straight.
_LARGEST_MESSAGE_BYTES = 1 << 26


#: A model of messages whose median error on held-out sizes is beyond this says little of an exchange.
_WORST_MEDIAN_ERROR = 0.2


def predicted_algorithms(scheme: str) -> tuple[str, ...]:
    """Return the algorithms by which a scheme's exchange is predicted; none where there is no closed form of it."""
    return _ALGORITHMS.get(scheme, ())


def predicted_ranks(design: ScalingDesign, upto: int, batch_size: int) -> list[int]:
    """Return the numbers of ranks to predict for: those that are measured, the powers of two, and the last one.

    For strong scaling no more than the minibatch has samples, since a rank with none does nothing.
    """
    last = upto if design.mode == "weak" else min(upto, batch_size)
    powers = [1 << power for power in range(last.bit_length()) if 1 << power >= design.base]
    asked = {*powers, last, *design.ranks}
    return sorted(count for count in asked if design.base <= count <= max(last, design.ranks[-1]))


def calibration_sizes(largest_bytes: int) -> list[int]:
    """Return sizes of messages, two for each doubling, up to that of a whole bucket and somewhat beyond."""
    bound = min(max(2 * largest_bytes, 1 << 16), _LARGEST_MESSAGE_BYTES)
    sizes = {round(2 ** (half / 2)) for half in range(2 * _LARGEST_MESSAGE_BYTES.bit_length())}
    return sorted(size for size in sizes if size <= bound)


def fit_messages(size_bytes: ArrayLike, times_s: ArrayLike, reduction_s_per_byte: float) -> Calibration:
    """Fit the piecewise model of messages, and check it on the sizes that are held out."""
    return calibrate(size_bytes, times_s, reduction_s_per_byte=reduction_s_per_byte, quantile=_QUANTILE)


def doubts_of_calibration(calibration: Calibration) -> list[str]:
    """Return what a reader of predictions must know: nothing where the held-out sizes were predicted well."""
    if calibration.median_relative_error <= _WORST_MEDIAN_ERROR:
        return []
    return [
        f"The times of messages were not predicted well (held-out sizes: median error "
        f"{calibration.median_relative_error:.0%}, largest {calibration.largest_relative_error:.0%}), as where other "
        "programs use the machine; the predictions are no better. Repeat it while nothing else runs."
    ]


def predict_scaling(
    algorithms: Sequence[str],
    step: TrainingStep,
    design: ScalingDesign,
    model: CostModel,
    rank_counts: Sequence[int],
) -> dict[str, list[ScalingPoint]]:
    """Return the predicted points by algorithm, with efficiencies against the base case as it is predicted.

    Args:
        algorithms: How gradients may be exchanged.
        step: A step on one rank (:meth:`ComputeModel.training_step`).
        design: The settings of the run.
        model: What a message costs.
        rank_counts: The numbers of ranks.
    """
    mode: ScalingMode = "weak" if design.mode == "weak" else "strong"
    found = {}
    for algorithm in algorithms:
        base, *points = predict(step, algorithm, [design.base, *rank_counts], model, mode)
        found[algorithm] = [replace(point, efficiency=point.efficiency / base.efficiency) for point in points]
    return found


def calibration_to_dict(calibration: Calibration, times_s: ArrayLike, size_bytes: ArrayLike) -> dict[str, Any]:
    """Return a calibration for JSON, with all its samples."""
    segments = [
        {
            "up_to_bytes": None if np.isinf(segment.up_to_bytes) else segment.up_to_bytes,
            "alpha_s": segment.alpha_s,
            "beta_s_per_byte": segment.beta_s_per_byte,
        }
        for segment in calibration.model.segments
    ]
    return {
        "segments": segments,
        "reduction_s_per_byte": calibration.model.reduction_s_per_byte,
        "quantile": _QUANTILE,
        "held_out_bytes": calibration.held_out_bytes.tolist(),
        "held_out_relative_errors": calibration.relative_errors.tolist(),
        "median_relative_error": calibration.median_relative_error,
        "largest_relative_error": calibration.largest_relative_error,
        "size_bytes": np.asarray(size_bytes).tolist(),
        "times_s": np.asarray(times_s).tolist(),
    }
