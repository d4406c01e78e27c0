"""What the names of jobs tell: which are builds and which tests, and which belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import shown

__all__ = ["BUILDS", "SEED_SUFFIXES", "TESTS", "matching", "stem", "subject"]

#: What the study of 2019 cuts off the ends of names, one after the other in this order, each at most once.
SEED_SUFFIXES = ("_build", "_test", "-build", "-test", "_multigpu", "_NO_AVX_NO_AVX2", "_NO_AVX2")

#: Jobs that build and jobs that test, as the study names them, and as GitHub names jobs of called workflows.
BUILDS = ("*_build", "*-build", "* / build*")
TESTS = ("*_test", "*-test", "* / test*")


def stem(name: str) -> str:
    """Return a name without the ends :data:`SEED_SUFFIXES`; one that is nothing else stays as it is."""
    short = name
    for suffix in SEED_SUFFIXES:
        short = short.removesuffix(suffix)
    return short or name


def subject(name: str) -> str:
    """Return what a build builds and a test tests: the same for a test and its build."""
    first, separator, _ = name.partition(" / ")
    return first if separator else stem(name)


def matching(names: Sequence[str], patterns: Iterable[str], what: str) -> list[int]:
    """Return the places of the names that match any of the patterns.

    Args:
        names: The names.
        patterns: Patterns with ``*``, ``?`` and ``[...]``; upper and lower case differ.
        what: What messages call a pattern.

    Raises:
        FleetError: A pattern matches no name.
    """
    found: set[int] = set()
    for pattern in patterns:
        places = [place for place, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not places:
            raise FleetError(
                f"{what} {shown(pattern)} matches none of the {len(names)} jobs.{near_miss(pattern, names)} "
                f"Accepted are names and patterns with * and ?, such as {shown(names[0]) if names else '*'}."
            )
        found.update(places)
    return sorted(found)
