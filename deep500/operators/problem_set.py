"""The contract of a problem set: problems of single operators that others have chosen, with their sizes."""

from __future__ import annotations

import abc
import csv
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError, MeasurementError, UnknownNameError, near_miss
from deep500.core.registry import Registry
from deep500.operators.problems import Problem

__all__ = ["PROBLEM_SETS", "ProblemSet", "read_problems", "spread_over_work"]

#: The problem sets, one file or folder each in ``deep500/operators/problem_sets``: a subclass of :class:`ProblemSet`.
#: A kind of workload of the same name makes its problems measurable.
PROBLEM_SETS = Registry("problem set", "deep500.operators.problem_sets")

P = TypeVar("P", bound=Problem)


class ProblemSet(abc.ABC):
    """Problems of several operators; each is known by its operator and its number, from 1."""

    @property
    @abc.abstractmethod
    def operations(self) -> tuple[str, ...]:
        """Names of the operators."""

    @abc.abstractmethod
    def _problems(self, operation: str) -> tuple[Problem, ...]:
        """Return all problems of an operator that there is, in order."""

    def problems(self, operation: str) -> tuple[Problem, ...]:
        """Return all problems of an operator, in order.

        Raises:
            UnknownNameError: The set has no such operator.
        """
        if operation not in self.operations:
            raise UnknownNameError(
                f"{type(self).__name__} has no operator {operation!r}.{near_miss(operation, self.operations)} It has: "
                f"{', '.join(self.operations)}."
            )
        return self._problems(operation)

    def problem(self, operation: str, number: int) -> Problem:
        """Return one problem by its number, from 1.

        Raises:
            UnknownNameError: The set has no such operator.
            MeasurementError: It has no problem of this number.
        """
        found = self.problems(operation)
        if not 1 <= check_count("size", number, least=1, error=MeasurementError) <= len(found):
            raise MeasurementError(f"The size {number} of {operation} was asked for; there are 1 to {len(found)}.")
        return found[number - 1]


def read_problems(path: str | PathLike[str], kind: type[P]) -> tuple[P, ...]:
    """Read problems from a table in CSV: a line of field names, then one line a problem.

    Args:
        path: The file.
        kind: What a line describes.

    Raises:
        InvalidInputError: A line is no such problem.
    """
    problems = []
    with Path(path).open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file, strict=True), 2):
            try:
                problems.append(kind(**{name: int(text) if text.isdigit() else text for name, text in row.items()}))
            except (AttributeError, InvalidInputError, TypeError) as error:  # too few or too many columns
                raise InvalidInputError(f"{Path(path).name}, line {number}: {error}") from error
    return tuple(problems)


def spread_over_work(problems: Sequence[Problem], limit: int | None) -> list[int]:
    """Choose problems that are spread evenly from the least work to the most.

    Sorted by floating-point operations, they are taken at equal distances of rank, the first and the last among them;
    of a single one, the middle.

    Args:
        problems: All problems.
        limit: How many to choose; ``None``, or more than there are, for all.

    Returns:
        Their numbers from 1, ascending.

    Raises:
        MeasurementError: The limit is no whole number from 1.
    """
    count = len(problems)
    if limit is None or check_count("limit", limit, least=1, error=MeasurementError) >= count:
        return list(range(1, count + 1))
    by_work = sorted(range(count), key=lambda index: (problems[index].flops, index))
    ranks = [count // 2] if limit == 1 else np.linspace(0, count - 1, limit).round().astype(int).tolist()
    return sorted(by_work[rank] + 1 for rank in ranks)
