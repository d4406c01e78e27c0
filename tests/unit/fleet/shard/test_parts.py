from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.shard.cases import Case
from deep500.fleet.shard.parts import longest_first, parts_of


def test_ties_go_to_what_comes_first() -> None:
    assert longest_first([5, 5, 5, 5], 2) == [[0, 2], [1, 3]]
    assert longest_first([1, 3, 2], 2) == [[1], [2, 0]]
    assert longest_first([], 2) == [[], []]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (
            None,
            [
                ("a.py", 50.0, ["a.py"]),
                ("b.py", 30.0, ["b.py::x", "b.py::y", "b.py::z"]),
                ("c.py", 5.0, ["c.py::x"]),
            ],
        ),
        (
            25.0,
            [
                ("a.py", 25.0, ["a.py 1/2"]),
                ("a.py", 25.0, ["a.py 2/2"]),
                ("b.py", 20.0, ["b.py::x"]),
                ("b.py", 10.0, ["b.py::y", "b.py::z"]),
                ("c.py", 5.0, ["c.py::x"]),
            ],
        ),
    ],
)
def test_parts_of_files(limit: float | None, expected: list[tuple[str, float, list[str]]]) -> None:
    cases = [
        Case("a.py", 50.0),
        Case("b.py::x", 20.0),
        Case("c.py::x", 5.0),
        Case("b.py::y", 4.0),
        Case("b.py::z", 6.0),
    ]
    # One test of b.py and one of c.py are in another lane.
    parts = parts_of(cases, {"a.py": 1, "b.py": 4, "c.py": 2}, limit)
    assert [(part.file, part.seconds, part.lines) for part in parts] == expected
    assert [part.lines for part in parts_of(cases, {}, None)] == [["a.py"], ["b.py"], ["c.py"]]


def test_a_limit_that_makes_too_many_parts_is_refused() -> None:
    with pytest.raises(FleetError, match="give a larger limit"):
        parts_of([Case("a.py", 1.0)], {}, 1e-300)


def test_durations_without_a_finite_sum_are_refused() -> None:
    with pytest.raises(FleetError, match="too large to be summed up"):
        parts_of([Case("a.py", 1e308), Case("b.py", 1e308)], {}, None)
