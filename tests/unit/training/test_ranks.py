"""A single process decides by itself."""

from __future__ import annotations

import pytest

from deep500.core.errors import FileWriteError
from deep500.training.ranks import ALONE


def test_what_a_single_process_decides_is_decided() -> None:
    assert (ALONE.rank, ALONE.size, ALONE.is_first, ALONE.replicas_equal) == (0, 1, True, True)
    assert (ALONE.decided("a"), ALONE.gathered([1]), ALONE.decided_in_step(3), ALONE.largest_in_step(4)) == (
        "a",
        [[1]],
        3,
        4,
    )


def test_an_error_of_the_first_is_raised() -> None:
    assert ALONE.first_does(lambda: 5, FileWriteError) == 5

    def fails() -> None:
        raise FileWriteError("the disk is full")

    with pytest.raises(FileWriteError, match="the disk is full"):
        ALONE.first_does(fails, FileWriteError)
