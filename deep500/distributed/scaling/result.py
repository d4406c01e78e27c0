"""All that a scaling run found, as a document and as a picture."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from deep500.core.files import write_atomically
from deep500.core.quantities import scaled
from deep500.distributed.scaling.design import available_processors
from deep500.distributed.scaling.summary import Estimate
from deep500.distributed.simulation.picture import MeasuredEfficiency, draw_scaling

if TYPE_CHECKING:
    from deep500.distributed.scaling.compute_model import ComputeModel
    from deep500.distributed.scaling.design import ScalingDesign
    from deep500.distributed.scaling.step_measurement import LaunchMeasurement
    from deep500.distributed.scaling.summary import MeasuredPoint
    from deep500.distributed.simulation.calibration import Calibration
    from deep500.distributed.simulation.training_step import ScalingPoint

__all__ = ["SCHEMA_VERSION", "Prediction", "ScalingResult", "with_interval"]

#: Version of the document's form.
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is predicted, and from what.

    Attributes:
        points: By algorithm.
        compute: How long steps compute.
        calibration: The messages of this machine, with the errors on held-out sizes.
        calibration_samples: All of it for JSON.
    """

    points: Mapping[str, Sequence[ScalingPoint]]
    compute: ComputeModel
    calibration: Calibration
    calibration_samples: Mapping[str, Any]

    def step_errors(self, measured: Sequence[MeasuredPoint]) -> dict[str, dict[int, float]]:
        """Return by algorithm and measured number of ranks ``predicted / measured step time - 1``."""
        times = {point.ranks: point.step_s.value for point in measured}
        return {
            name: {point.ranks: point.step_s / times[point.ranks] - 1 for point in points if point.ranks in times}
            for name, points in self.points.items()
        }

    def to_dict(self, measured: Sequence[MeasuredPoint]) -> dict[str, Any]:
        """Return it for JSON."""
        points = {name: [dataclasses.asdict(point) for point in points] for name, points in self.points.items()}
        errors = {
            name: {str(ranks): error for ranks, error in found.items()}
            for name, found in self.step_errors(measured).items()
        }
        return {
            "points": points,
            "relative_error_of_step": errors,
            "compute": self.compute.to_dict(),
            "messages": dict(self.calibration_samples),
        }


@dataclass(frozen=True, eq=False)
class ScalingResult:
    """All that a scaling run found.

    Attributes:
        name: What was scaled.
        scheme: How its ranks exchange.
        framework: Framework and version.
        batch_size: The recipe's.
        design: The settings.
        points: By number of ranks, ascending; the first is the base case.
        launches: All samples, by number of ranks.
        prediction: For ranks that are not there; ``None`` where none was asked for, or none can be made.
        notes: What a reader must know.
        about: The recipe, versions and the machine, for the document.
        complete: Whether all launches were measured, and what was to be predicted was; one that broke off has the
            points of the ranks that were.
    """

    name: str
    scheme: str
    framework: str
    batch_size: int
    design: ScalingDesign
    points: Sequence[MeasuredPoint]
    launches: Mapping[int, Sequence[LaunchMeasurement]]
    prediction: Prediction | None = None
    notes: Sequence[str] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def how_far(self) -> str:
        """How many launches were measured, for people."""
        planned = len(self.design.order())
        taken = sum(len(of_ranks) for of_ranks in self.launches.values())
        if self.complete:
            return ""
        if taken == planned:
            return "Incomplete: all launches were measured, but nothing was predicted."
        missing = [str(ranks) for ranks in self.design.ranks if not self.launches.get(ranks)]
        without = f"; nothing on {', '.join(missing)} ranks" if missing else ""
        return f"Incomplete: {taken} of {planned} launches were measured{without}."

    @property
    def base_case(self) -> str:
        """What efficiencies and speedups are against, with its absolute values."""
        base = self.points[0]
        ranks = "a single rank" if base.ranks == 1 else f"{base.ranks} ranks"
        return (
            f"the same parallel program on {ranks}: {with_interval('s', base.step_s)} a step of {base.samples} "
            f"samples, {with_interval('samples/s', base.samples_per_s)}"
        )

    @property
    def what(self) -> str:
        """What was scaled and how, in one line."""
        kept = "all ranks together" if self.design.mode == "strong" else "each rank"
        return (
            f"{self.name}, {self.framework}, scheme {self.scheme}: {self.design.mode} scaling, "
            f"{self.batch_size} samples a step of {kept}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "scaling",
            "complete": self.complete,
            **self.about,
            "scheme": self.scheme,
            "framework": self.framework,
            "batch_size": self.batch_size,
            "design": {**self.design.to_dict(), "order": [list(launch) for launch in self.design.order()]},
            "processors": available_processors(),
            "base_case": {"ranks": self.points[0].ranks, "text": self.base_case},
            "points": [point.to_dict() for point in self.points],
            "launches": {
                str(ranks): [launch.to_dict() for launch in taken] for ranks, taken in sorted(self.launches.items())
            },
            "prediction": None if self.prediction is None else self.prediction.to_dict(self.points),
            "notes": list(self.notes),
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Write the document as JSON.

        Raises:
            FileWriteError: The file cannot be written.
        """
        write_atomically(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n", "result")

    def draw(self, path: str | PathLike[str]) -> None:
        """Draw efficiency over ranks, measured beside predicted; oversubscribed ranks are marked.

        Raises:
            MeasurementError: The file's name ends with no known format.
            FileWriteError: The file cannot be written.
        """
        measured = [
            MeasuredEfficiency(point.ranks, *_ends(point.efficiency), oversubscribed=point.oversubscribed)
            for point in self.points
        ]
        predicted = {} if self.prediction is None else self.prediction.points
        labels = {name.replace("_", " "): points for name, points in predicted.items()}
        note = f"{self.how_far}{' ' if self.how_far else ''}Base case: {self.base_case}."
        if self.prediction is not None:
            note += (
                f"\nPredicted with this machine's messages (LogGP, piecewise; held-out sizes: median error "
                f"{self.prediction.calibration.median_relative_error:.0%}, largest "
                f"{self.prediction.calibration.largest_relative_error:.0%})."
            )
        draw_scaling(path, labels, {self.scheme: measured}, title=self.what, note=note)


def with_interval(unit: str, estimate: Estimate) -> str:
    """Return an estimate with its interval, where it has one, for people."""
    if estimate.low is None or estimate.high is None:
        return f"{scaled(unit, estimate.value)[0]} (no interval)"
    value, low, high = scaled(unit, estimate.value, estimate.low, estimate.high)
    return f"{value} ({low} .. {high})"


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    """Return estimate and ends of the interval; a point where it has none."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return estimate.value, min(low, estimate.value), max(high, estimate.value)
