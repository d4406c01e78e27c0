"""What was wrong with what was read: named, counted, and told."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from deep500.core.texts import encodable, one_line

__all__ = ["InputReport", "Problem", "ProblemKind"]

#: So many examples of one kind in one source are kept.
_EXAMPLES = 3

#: So many characters of an example are kept.
_LONGEST = 300


class ProblemKind(str, enum.Enum):
    """The kinds of faults that input can have. The value is what is shown."""

    MALFORMED = "malformed"  #: cannot be read as what the format says; it was left out
    EMPTY = "empty"  #: holds nothing; there was nothing to take
    ENCODING = "encoding"  #: bytes that are no UTF-8; they were replaced by U+FFFD
    DUPLICATE = "duplicate"  #: says again, word for word, what another row says; one was kept
    CLOCK_SKEW = "clock skew"  #: ends before it starts, or starts before it was asked for; these times were left out
    UNKNOWN_STATUS = "unknown status"  #: a status that the format does not define; the outcome is ``missing``
    INCOMPLETE = "incomplete"  #: a field that is needed is not there; the row was left out, or the field is unknown
    UNRECOGNISED = "unrecognised"  #: a file that no reader knows; it was left out


@dataclass
class Problem:
    """Faults of one kind in one source, about which one thing was done.

    Attributes:
        kind: Which.
        source: The file.
        count: How many.
        examples: The first of them.
        effect: What was done about it.
    """

    kind: ProblemKind
    source: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    effect: str = ""


class InputReport:
    """What was read, and what was wrong with it.

    Attributes:
        rows: How many outcomes came of each source, in the order of reading.
        formats: The reader of each source.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.rows: dict[str, int] = {}
        self.formats: dict[str, str] = {}
        self._problems: dict[tuple[str, ProblemKind, str], Problem] = {}

    def add(
        self, kind: ProblemKind, source: str, count: int = 1, examples: Iterable[str] = (), effect: str = ""
    ) -> None:
        """Count faults; nothing happens for a count of zero.

        Args:
            kind: Their kind.
            source: The file, as it was given.
            count: How many there are.
            examples: Some of them, with the line where that is known.
            effect: What was done about it; by default what the kind says.
        """
        if count <= 0:
            return
        effect = effect or _EFFECTS[kind]
        problem = self._problems.setdefault((source, kind, effect), Problem(kind, source, effect=effect))
        problem.count += count
        more = list(itertools.islice(examples, max(0, _EXAMPLES - len(problem.examples))))
        problem.examples.extend(encodable(one_line(example), "utf-8")[:_LONGEST] for example in more)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The faults by source, kind and what was done."""
        return tuple(self._problems.values())

    def count(self, kind: ProblemKind) -> int:
        """Return how many faults of a kind there are in all sources."""
        return sum(problem.count for problem in self.problems if problem.kind is kind)

    def to_dict(self) -> dict[str, Any]:
        """Return what the report says as what JSON can hold."""
        sources = [
            {"source": encodable(source, "utf-8"), "format": self.formats.get(source), "outcomes": rows}
            for source, rows in self.rows.items()
        ]
        problems = [
            {
                "kind": problem.kind.value,
                "source": encodable(problem.source, "utf-8"),
                "count": problem.count,
                "examples": problem.examples,
                "effect": problem.effect,
            }
            for problem in self.problems
        ]
        return {"sources": sources, "outcomes": sum(self.rows.values()), "problems": problems}


_EFFECTS = {
    ProblemKind.MALFORMED: "left out",
    ProblemKind.EMPTY: "nothing to take",
    ProblemKind.ENCODING: "bytes that are no UTF-8 were replaced by \N{REPLACEMENT CHARACTER}",
    ProblemKind.DUPLICATE: "one of each was kept",
    ProblemKind.CLOCK_SKEW: "taken as unknown times",
    ProblemKind.UNKNOWN_STATUS: "taken as missing",
    ProblemKind.INCOMPLETE: "left out",
    ProblemKind.UNRECOGNISED: "left out",
}
