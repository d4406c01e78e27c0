"""Lanes: runners of one kind, each with so many GPUs, for every commit or every few hours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.errors import FleetError
from deep500.core.texts import counted, shown

__all__ = ["Lane", "lanes_of_texts", "smallest_that_fits"]

#: Most shards, most runners and most GPUs of a runner, of a lane.
_MOST = 100_000

_FORM = re.compile(
    r"(?P<gpus>\d+(?:\.\d+)?)x(?P<shards>\d+)(?::(?P<runners>\d+))?(?:@(?P<period>\d+(?:\.\d+)?)(?P<unit>[hmsd]))?"
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Lane:
    """Runners of one kind.

    Attributes:
        gpus: GPUs of each runner.
        shards: Into how many parts its work is divided.
        runners: How many there are.
        period_s: Seconds from one run to the next; ``None`` for a lane that every commit goes through.

    Raises:
        FleetError: A number is out of range.
    """

    gpus: float
    shards: int
    runners: int
    period_s: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.gpus < 0 or self.shards < 1 or self.runners < 1 or (self.period_s is not None and self.period_s <= 0):
            raise FleetError(
                f"A lane of {self._said}{'' if self.period_s is None else f', every {self.period_s:g} s,'} cannot be; "
                "shards and runners are counted from 1, and a period is above 0."
            )
        if max(self.shards, self.runners, self.gpus) > _MOST:
            raise FleetError(f"A lane of {self._said} was given; accepted are up to {_MOST:,} of each.")

    @property
    def _said(self) -> str:
        gpus = "1 GPU" if self.gpus == 1 else f"{self.gpus:g} GPUs"
        return f"{counted(self.shards, 'shard')} on {counted(self.runners, 'runner')} with {gpus} each"

    @property
    def is_periodic(self) -> bool:
        """Whether it runs by the clock instead of for every commit."""
        return self.period_s is not None

    @property
    def name(self) -> str:
        """What it is called."""
        every = "" if self.period_s is None else f" every {_duration(self.period_s)}"
        return f"{self.gpus:g}-GPU{every}"


def lanes_of_texts(texts: Sequence[str]) -> tuple[Lane, ...]:
    """Return lanes given as ``GPUSxSHARDS[:RUNNERS][@PERIOD]``; there are as many runners as shards by default.

    Example:
        >>> [lane.name for lane in lanes_of_texts(["2x3:12", "4x1@3h"])]
        ['2-GPU', '4-GPU every 3 h']

    Raises:
        FleetError: A text is none, or two lanes of one kind have as many GPUs.
    """
    lanes = tuple(_lane(text) for text in texts)
    kinds = [(lane.gpus, lane.is_periodic) for lane in lanes]
    for number, kind in enumerate(kinds):
        if kind in kinds[:number]:
            raise FleetError(f"There are two lanes of {lanes[number].name} runners; put them together.")
    return lanes


def smallest_that_fits(lanes: Sequence[Lane], gpus: float) -> Lane | None:
    """Return the lane for a test that needs so many GPUs; ``None`` where no runner has as many.

    Lanes for every commit come before periodic ones, and of these the one with the fewest GPUs that suffice.
    """
    fitting = [lane for lane in lanes if lane.gpus >= gpus]
    return min(fitting, key=lambda lane: (lane.is_periodic, lane.gpus), default=None)


def _lane(text: str) -> Lane:
    found = _FORM.fullmatch(text.replace(" ", ""))
    if found is None:
        raise FleetError(
            f"A lane was given as {shown(text)}; accepted is GPUSxSHARDS[:RUNNERS][@PERIOD], such as 2x3 (three shards "
            f"on runners with 2 GPUs), 2x3:12 (of which there are twelve) or 4x1@3h (every three hours)."
        )
    period = None if found["period"] is None else float(found["period"]) * _SECONDS[found["unit"]]
    shards = int(found["shards"])
    return Lane(float(found["gpus"]), shards, int(found["runners"] or shards), period)


def _duration(seconds: float) -> str:
    unit = next(unit for unit in "dhms" if seconds >= _SECONDS[unit] or unit == "s")
    return f"{seconds / _SECONDS[unit]:g} {unit}"
