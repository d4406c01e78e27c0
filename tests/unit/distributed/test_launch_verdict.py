"""What a launch tells of ranks that the others went on without."""

from __future__ import annotations

from pathlib import Path

import pytest

from deep500.distributed._launch_records import RankRecord
from deep500.distributed._launch_verdict import verdict
from tests.unit.distributed.test_launch import seen


def test_how_a_rank_failed_is_told(tmp_path: Path) -> None:
    left, traceback = RankRecord(0, True, 0), "Traceback\nValueError: wrong"
    cases = [
        ([RankRecord(1, False, 2, "RecipeError", "wrong")], {}, ["Rank 1 of 2 failed: wrong; the others"]),
        ([RankRecord(1, False, 1, "ValueError", "ValueError: wrong", traceback)], {},
         ["[rank 1] Traceback", "[rank 1] ValueError: wrong", "Rank 1 of 2 failed; the others"]),
        ([], {"lost": [1], "signal_that_ended": lambda rank: 9}, ["Rank 1 of 2 was ended by SIGKILL; the others"]),
        ([], {"lost": [1]}, ["Rank 1 of 2 failed; the others"]),
        ([], {"members": {}}, ["Rank 1 of 2 failed; the others"]),
    ]  # fmt: skip
    for number, (failed, more, expected) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = verdict(seen(folder, left, *failed, **more), 137, shrinks=True)
        assert found.code == 0
        assert found.is_normal
        assert len(found.lines) == len(expected)
        assert all(line.startswith(start) for line, start in zip(found.lines, expected, strict=True))


@pytest.mark.parametrize("code", [0, 1])
def test_the_code_is_that_of_those_that_are_left(code: int, tmp_path: Path) -> None:
    assert verdict(seen(tmp_path, RankRecord(1, True, code), lost=[0]), 9, shrinks=True).code == code
