"""The rates at which generated tasks fail and succeed, and what they make of the estimators' truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import FleetError
from deep500.core.texts import shown

__all__ = ["EFFECTS", "REFERENCE", "TYPE_SHARES", "CauseHazard", "Hazards", "positive_stable"]

#: What effects are of: the rate is multiplied by exp(effect) for each doubling.
EFFECTS = ("plan_gpu", "plan_cpu", "plan_mem", "size")

#: The values for which a hazard's scale holds.
REFERENCE = {"plan_gpu": 100.0, "plan_cpu": 600.0, "plan_mem": 29.0, "size": 1.0}

#: The GPU types of seed 004, with their shares of the users' first choices.
TYPE_SHARES = {"MISC": 0.25, "P100": 0.22, "T4": 0.25, "V100": 0.2, "V100M32": 0.08}

#: Accepted scales (in hours), shapes, and logarithms of effects: beyond, times overflow.
_LEAST, _MOST, _MOST_EFFECT = 1e-4, 1e9, 10.0

#: Accepted lengths of a trace in days: a minute to three thousand years.
_LEAST_DAYS, _MOST_DAYS = 1 / 1440, 1e6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CauseHazard:
    r"""The rate of one cause: Weibull by GPU type, log-linear in the task, with a factor for each user.

    The cumulative hazard of a task of user :math:`u` on type :math:`g` is
    :math:`W_u\, (t / s_g)^{k_g} \exp \sum_j \beta_j \log_2 (x_j / r_j)`. :math:`W_u` is positive stable with index
    :math:`\alpha`, so that over all users the task survives until :math:`t` with probability
    :math:`\exp(-\Lambda^\alpha)`: rates stay proportional, and what a model of all users finds is :math:`\alpha \beta`.

    Source: P. Hougaard, "A class of multivariate failure time distributions", Biometrika 73 (1986).

    Attributes:
        scale_h: The scale :math:`s_g` of each type in hours.
        shape: The shape :math:`k_g` of each type; 1 is a constant rate.
        effects: The effects :math:`\beta_j`.
        stability: The index :math:`\alpha`, above 0 up to 1: 1 is users who are all alike.
    """

    scale_h: Mapping[str, float]
    shape: Mapping[str, float]
    effects: Mapping[str, float] = field(default_factory=dict)
    stability: float = 1.0

    def __post_init__(self) -> None:
        """Check what was given."""
        for what, values in (("scale", self.scale_h), ("shape", self.shape)):
            if set(values) != set(TYPE_SHARES):
                raise FleetError(
                    f"The {what} of a hazard was given for {', '.join(map(shown, values)) or 'nothing'}; it is needed "
                    f"for {', '.join(TYPE_SHARES)}."
                )
            wrong = [value for value in values.values() if not _LEAST <= value <= _MOST]
            if wrong:
                raise FleetError(
                    f"The {what} of a hazard was given as {wrong[0]:g}; accepted is from {_LEAST:g} to {_MOST:g}"
                    f"{' hours' if what == 'scale' else ''}."
                )
        unknown = sorted(set(self.effects) - set(EFFECTS))
        if unknown:
            raise FleetError(f"There is no effect of {shown(unknown[0])}; accepted are {', '.join(EFFECTS)}.")
        wild = [value for value in self.effects.values() if not abs(value) <= _MOST_EFFECT]
        if wild:
            raise FleetError(f"An effect was given as {wild[0]:g}; accepted is from {-_MOST_EFFECT} to {_MOST_EFFECT}.")
        if not 0 < self.stability <= 1:
            raise FleetError(f"The stability of users is {self.stability:g}; accepted is above 0, up to 1.")

    def draw(self, generator: np.random.Generator, types: NDArray[np.int64], x: Floats, users: Floats) -> Floats:
        """Return how many seconds each task would run until this cause ends it.

        Args:
            generator: Draws.
            types: The type of each task, a place in :data:`TYPE_SHARES`.
            x: The logarithms to base 2 of :data:`EFFECTS` over :data:`REFERENCE`: ``[tasks, effects]``.
            users: The factor of each task's user.
        """
        names = list(TYPE_SHARES)
        scale = np.array([self.scale_h[name] for name in names])[types] * 3600.0
        shape = np.array([self.shape[name] for name in names])[types]
        beta = np.array([self.effects.get(name, 0.0) for name in EFFECTS])
        left = generator.standard_exponential(len(types)) / (users * np.exp(x @ beta))
        with np.errstate(over="ignore"):  # a time beyond all numbers is one that nobody sees
            times: Floats = scale * left ** (1.0 / shape)
        return times

    def truth(self) -> dict[str, Any]:
        """Return what estimators over all users are to find, and what was planted."""
        shapes, scales, names = dict(self.shape), dict(self.scale_h), list(TYPE_SHARES)
        alike = len(set(shapes.values())) == 1
        ratios = {name: self.stability * shapes[name] * math.log(1 / scales[name]) for name in names}
        return {
            "scale_h": scales,
            "shape": shapes,
            "stability": self.stability,
            "effects_per_doubling": {name: self.effects.get(name, 0.0) for name in EFFECTS},
            "marginal": {
                "what": "of a task chosen at random: survival exp(-(t/scale)^shape * exp(effects))",
                "shape": {name: self.stability * shape for name, shape in shapes.items()},
                "log_ratio_per_doubling": {name: self.stability * self.effects.get(name, 0.0) for name in EFFECTS},
                "log_rate_of_type": ratios if alike else None,
            },
        }


def positive_stable(generator: np.random.Generator, index: float, size: int) -> Floats:
    r"""Draw positive stable numbers: :math:`E\, e^{-sW} = e^{-s^\alpha}`; all are 1 for an index of 1.

    Source: M. Kanter, "Stable Densities under Change of Scale and Total Variation Inequalities", Annals of
    Probability 3 (1975).
    """
    if index == 1:
        return np.ones(size)
    u = generator.uniform(0, math.pi, size)
    e = generator.standard_exponential(size)
    first = np.sin(index * u) / np.sin(u) ** (1 / index)
    drawn: Floats = first * (np.sin((1 - index) * u) / e) ** ((1 - index) / index)
    return drawn


def _same(value: float) -> dict[str, float]:
    return dict.fromkeys(TYPE_SHARES, value)


def _default_failed() -> CauseHazard:
    scales = {"MISC": 14.0, "P100": 18.0, "T4": 11.0, "V100": 30.0, "V100M32": 17.0}
    effects = {"plan_gpu": -0.12, "plan_cpu": 0.05, "plan_mem": 0.08, "size": 0.15}
    return CauseHazard(scales, _same(0.7), effects, stability=0.9)


def _default_passed() -> CauseHazard:
    scales = {"MISC": 1.7, "P100": 2.5, "T4": 1.0, "V100": 3.2, "V100M32": 3.9}
    effects = {"plan_gpu": -0.1, "plan_cpu": -0.12, "plan_mem": -0.1, "size": -0.03}
    return CauseHazard(scales, _same(0.9), effects, stability=0.9)


@dataclass(frozen=True)
class Hazards:
    """All that ends a generated task.

    Attributes:
        failed: The rate of failing.
        passed: The rate of succeeding.
        cancelled_per_h: The rate at which someone ends it. The PAI tables have no status of tasks for that: it is
            written as ``Interrupted``, as they do for instances, and read as cancelled.
        days: How long the trace is: what still runs at its end is seen no longer.
        missing: The share of the plans (CPU, memory, GPU) that are not written down, whatever they are.
    """

    failed: CauseHazard = field(default_factory=_default_failed)
    passed: CauseHazard = field(default_factory=_default_passed)
    cancelled_per_h: float = 0.0
    days: float = 62.0
    missing: float = 0.01

    def __post_init__(self) -> None:
        """Check what was given."""
        right = _LEAST_DAYS <= self.days <= _MOST_DAYS and 0 <= self.cancelled_per_h <= _MOST
        if not (right and 0 <= self.missing < 1):
            raise FleetError(
                f"A trace of {self.days:g} days, {self.cancelled_per_h:g} cancellations an hour and {self.missing:g} "
                f"missing plans cannot be made: accepted are days from {_LEAST_DAYS:.4f} (a minute) to "
                f"{_MOST_DAYS:,.0f}, cancellations from 0 to {_MOST:g}, and missing plans from 0, below 1."
            )

    @classmethod
    def constant(cls, failed_h: float, passed_h: float, **others: Any) -> Hazards:
        """Return constant rates, the same for all tasks and users.

        Args:
            failed_h: The mean time to failure in hours.
            passed_h: The mean time to success.
            **others: Attributes of the class.
        """
        failed, passed = (CauseHazard(_same(mean), _same(1.0)) for mean in (failed_h, passed_h))
        return cls(failed, passed, **others)

    def truth(self) -> dict[str, Any]:
        """Return what was planted, and what estimators are to find."""
        return {
            "failed": self.failed.truth(),
            "passed": self.passed.truth(),
            "cancelled_per_h": self.cancelled_per_h,
            "days": self.days,
            "missing": self.missing,
            "reference": REFERENCE,
        }
