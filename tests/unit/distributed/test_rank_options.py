"""Times that are none are refused, in the words of whoever gave them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.communicators.local import LocalCommunicator, run_threads
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.rank_options import RankOptions, checked_timeout, timeout_of_option

BAD = [0, -1, math.nan, math.inf, True, "1", [1]]


@pytest.mark.parametrize("seconds", BAD)
def test_bad_time_is_refused_wherever_it_is_given(seconds: Any) -> None:
    for take in (
        lambda: RankOptions(timeout_s=seconds),
        lambda: LocalCommunicator(timeout_s=seconds),
        lambda: create_communicator("local", timeout_s=seconds),
        lambda: run_threads(2, lambda communicator: None, timeout_s=seconds),
    ):
        with pytest.raises(CommunicationError, match=r"timeout_s was given as .*None to wait for ever"):
            take()


def test_times_that_are_accepted() -> None:
    assert checked_timeout(None) is None
    assert [checked_timeout(seconds) for seconds in (2, 0.5, np.float32(1.5))] == [2.0, 0.5, 1.5]


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_option_is_named_as_it_was_typed(seconds: float) -> None:
    with pytest.raises(CommunicationError, match=r"^--timeout was given as .*or 0 to wait for ever"):
        timeout_of_option(seconds)
    assert (timeout_of_option(0.0), timeout_of_option(3.5)) == (None, 3.5)
