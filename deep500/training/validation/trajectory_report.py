"""What a comparison of training trajectories found."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from deep500.core.errors import TrainingError
from deep500.networks.plain_table import plain_table

__all__ = ["Growth", "Parting", "TensorParting", "Trajectory", "TrajectoryReport"]

#: So many tensors, and steps of the table, are shown; the others can be asked for.
_MOST_TENSORS = 6
_MOST_ROWS = 12


@dataclass(frozen=True)
class Growth:
    """How fast a distance grows: the least-squares line through its logarithm.

    Attributes:
        rate: Growth a step: the distance is multiplied by ``exp(rate)``.
        at_first: The line's distance at step 1.
        r_squared: Share of the logarithm's variance that the line explains; near 1 where growth is exponential.
        steps: Number of steps with a distance above 0, which the line was laid through.
    """

    rate: float
    at_first: float
    r_squared: float
    steps: int

    @property
    def doubling_steps(self) -> float:
        """Number of steps in which the distance doubles; infinite where it does not grow."""
        return math.log(2) / self.rate if self.rate > 0 else math.inf

    @classmethod
    def of(cls, distances: list[float]) -> Growth | None:
        """Return the growth of distances at the steps 1, 2, ...; ``None`` with fewer than three above 0."""
        known = [(step, math.log(d)) for step, d in enumerate(distances, 1) if 0 < d < math.inf]
        if len(known) < 3:
            return None
        steps, logs = np.array(known).T
        rate, offset = np.polyfit(steps, logs, 1)
        spread = float(((logs - logs.mean()) ** 2).sum())
        left = float(((logs - (rate * steps + offset)) ** 2).sum())
        return cls(float(rate), math.exp(rate + offset), 1.0 - left / spread if spread else 1.0, len(known))

    def __str__(self) -> str:
        """Return the growth as a phrase."""
        doubling = f"doubles in {self.doubling_steps:.3g} steps" if self.rate > 0 else "does not grow"
        return f"{math.exp(self.rate):.3g} x a step ({doubling}; R^2 {self.r_squared:.2f} over {self.steps} steps)"


@dataclass(frozen=True)
class TensorParting:
    """One tensor that is farther away than allowed.

    Attributes:
        name: The parameter, or ``"loss"``.
        distance: Its distance from the reference's.
        allowed: What was allowed of it.
    """

    name: str
    distance: float
    allowed: float

    @property
    def excess(self) -> float:
        """The distance in multiples of what is allowed."""
        return self.distance / self.allowed if self.allowed else math.inf

    def __str__(self) -> str:
        """Return it as a phrase."""
        return f"{self.name!r} is {self.distance:.3g} away; allowed is {self.allowed:.3g}"


@dataclass(frozen=True)
class Parting:
    """The first step after which a trajectory is farther away than rounding explains.

    Attributes:
        step: Its number, from 1.
        tensors: What is too far away then, the farthest beyond what is allowed first.
        cause: What differs when both make this step from the reference's parameters: the first node whose outputs or
            gradients differ, the gradients, or the update.
        node: The first node that differs when both are given the same values; ``None`` where all agree.
    """

    step: int
    tensors: tuple[TensorParting, ...]
    cause: str
    node: str | None = None

    @property
    def tensor(self) -> str:
        """The tensor that parts first: the one farthest beyond what is allowed."""
        return self.tensors[0].name


@dataclass(frozen=True)
class Trajectory:
    """One framework's training beside the reference's.

    Attributes:
        framework: Whose it is.
        losses: The loss of each step, before its update.
        distances: Distance of all parameters together after each step, ``|p - p_ref| / |p_ref|`` in the 2-norm.
        tensor_distances: The same of each parameter.
        loss_distances: ``|l - l_ref| / max(|l_ref|, 1e-3)`` of each step.
        parting: Where it parts from the reference; ``None`` when it does not.
        growth: How fast ``distances`` grow.
    """

    framework: str
    losses: tuple[float, ...]
    distances: tuple[float, ...]
    tensor_distances: dict[str, tuple[float, ...]]
    loss_distances: tuple[float, ...]
    parting: Parting | None
    growth: Growth | None


@dataclass(frozen=True)
class TrajectoryReport:
    """What :func:`~deep500.training.validation.trajectories.compare_trajectories` found.

    Attributes:
        network: Name of the network.
        optimizer: Name of the reference's optimizer.
        reference: The framework with which the others were compared.
        losses: The reference's loss of each step.
        trajectories: The others.
        allowed: What was allowed of the distance of all parameters together after each step.
        noise: Size of the relative disturbance by which what is allowed was found; 0 when it was given.
        failures: Frameworks that could not train, with the reason.
        notes: What to know about the result.
    """

    network: str
    optimizer: str
    reference: str
    losses: tuple[float, ...]
    trajectories: tuple[Trajectory, ...]
    allowed: tuple[float, ...]
    noise: float
    failures: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every framework trained and parted from the reference by no more than rounding explains."""
        return not self.failures and all(trajectory.parting is None for trajectory in self.trajectories)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.losses)

    def of(self, framework: str) -> Trajectory:
        """Return the trajectory of a framework.

        Raises:
            TrainingError: There is none.
        """
        found = next((t for t in self.trajectories if t.framework == framework), None)
        if found is None:
            known = ", ".join(t.framework for t in self.trajectories)
            raise TrainingError(f"There is no trajectory of {framework!r}; there are those of {known or 'nobody'}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the report in JSON's types; infinities and NaN are texts."""
        cleaned = _as_json({"passed": self.passed, **dataclasses.asdict(self)})
        assert isinstance(cleaned, dict)
        return cleaned

    def draw(self, path: str | PathLike[str]) -> None:
        """Draw losses and distances over the steps into a file, ``.svg`` or ``.png``.

        Raises:
            TrainingError: The file's name ends with neither.
            FileWriteError: The file cannot be written.
        """
        from deep500.training.validation._trajectory_picture import draw_trajectories

        draw_trajectories(self, path)

    def __str__(self) -> str:
        """Return the verdicts, and a table of the steps."""
        verdict = "PASSED" if self.passed else "FAILED"
        lines = [
            f"Training of {self.network!r} by {self.optimizer}, {self.steps} steps, against {self.reference}: {verdict}"
        ]
        lines += [f"  {name}: could not train: {why}" for name, why in self.failures]
        for trajectory in self.trajectories:
            lines += _verdict(trajectory)
        lines += ["", *self._table()] if self.trajectories else []
        return "\n".join([*lines, *(f"  note: {text}" for text in self.notes)])

    def _table(self) -> list[str]:
        steps = np.linspace(1, self.steps, min(_MOST_ROWS, self.steps)).astype(int).tolist()
        titles = ["step", "loss", "allowed", *(t.framework for t in self.trajectories)]
        rows = [
            [f"{step}", f"{self.losses[step - 1]:.6g}", f"{self.allowed[step - 1]:.2g}"]
            + [f"{t.distances[step - 1]:.2g}" for t in self.trajectories]
            for step in steps
        ]
        return [f"  {line}" for line in plain_table(titles, rows, titles)]


def _verdict(trajectory: Trajectory) -> list[str]:
    parting = trajectory.parting
    grows = "" if trajectory.growth is None else f"; the distance grows {trajectory.growth}"
    if parting is None:
        last = trajectory.distances[-1] if trajectory.distances else 0.0
        return [f"  {trajectory.framework}: agrees; in the end it is {last:.2g} away{grows}"]
    more = len(parting.tensors) - _MOST_TENSORS
    return [
        f"  {trajectory.framework}: parts at step {parting.step}{grows}",
        *(f"    {tensor}" for tensor in parting.tensors[:_MOST_TENSORS]),
        *([f"    and {more} more"] if more > 0 else []),
        f"    {parting.cause}",
    ]


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
