"""What differs between two campaigns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.texts import shown_path
from deep500.fleet.compat.campaign import CAMPAIGN_FILE, Campaign
from deep500.fleet.compat.collecting import OUTCOMES_FILE, collect_campaign
from deep500.fleet.input_report import InputReport
from deep500.fleet.outcome import Outcome
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.reading import read_outcomes

__all__ = ["Change", "Difference", "compare", "outcomes_of"]


@dataclass(frozen=True)
class Change:
    """A cell whose outcome is another one.

    Attributes:
        cell: Its id.
        old: What came of it before; ``None`` for a cell that is new.
        new: What came of it now; ``None`` for a cell that is gone.
    """

    cell: str
    old: Outcome | None
    new: Outcome | None

    @property
    def kind(self) -> str:
        """What changed.

        ``broken``: it passed and does not any more; ``no verdict``: it passed, and nothing is known of it now;
        ``repaired``; ``status``; ``cause``; ``new``; ``gone``.
        """
        if self.old is None:
            return "new"
        if self.new is None:
            return "gone"
        if self.old.status == "passed" != self.new.status:
            return "no verdict" if self.new.status in ("missing", "cancelled") else "broken"
        if self.old.status != self.new.status:
            return "repaired" if self.new.status == "passed" else "status"
        return "cause"

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        sides = {
            name: None if side is None else {"status": side.status, "cause": side.cause}
            for name, side in (("old", self.old), ("new", self.new))
        }
        return {"cell": self.cell, "kind": self.kind, **sides}


@dataclass(frozen=True)
class Difference:
    """What differs.

    Attributes:
        changes: The cells that differ: what broke first.
        same: How many do not.
        repeated: How many outcomes of cells that were run again were passed over for the last one.
    """

    changes: tuple[Change, ...]
    same: int
    repeated: int

    @property
    def regressed(self) -> bool:
        """Whether something that passed does not pass any more."""
        return any(change.kind in ("broken", "no verdict") for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {
            "regressed": self.regressed,
            "changes": [change.to_dict() for change in self.changes],
            "same": self.same,
            "repeated": self.repeated,
        }


_ORDER = ("broken", "no verdict", "status", "cause", "repaired", "new", "gone")


def outcomes_of(path: str | Path) -> tuple[OutcomeTable, InputReport]:
    """Return the outcomes of a campaign's folder as they stand now, or of a table of outcomes.

    Raises:
        FleetError: There are none.
    """
    place = Path(path)
    if place.is_dir() and (place / CAMPAIGN_FILE).exists():
        collected = collect_campaign(Campaign.read(place))
        if not collected.outcomes:
            raise FleetError(f"The campaign {shown_path(path)} has no cells: all of its matrix was dropped.")
        return OutcomeTable.from_outcomes(collected.outcomes), collected.report
    if place.is_dir() and (place / OUTCOMES_FILE).exists():
        place = place / OUTCOMES_FILE
    return read_outcomes([place])


def compare(old: OutcomeTable, new: OutcomeTable) -> Difference:
    """Return what differs between two tables of outcomes, by key.

    Of a key that stands there several times the outcome that ended last counts.
    """
    before, after = _last(old), _last(new)
    changes = []
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if one is None or other is None or (one.status, one.cause) != (other.status, other.cause):
            changes.append(Change(key, one, other))
    changes.sort(key=lambda change: (_ORDER.index(change.kind), change.cell))
    same = len(set(before) & set(after)) - sum(change.kind not in ("new", "gone") for change in changes)
    repeated = len(old) - len(before) + len(new) - len(after)
    return Difference(tuple(changes), same, repeated)


def _last(table: OutcomeTable) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for outcome in table.outcomes():
        known = found.get(outcome.key)
        if known is None or (outcome.ended or 0.0) >= (known.ended or 0.0):
            found[outcome.key] = outcome
    return found
