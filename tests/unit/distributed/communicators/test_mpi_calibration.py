from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from deep500.distributed.communicators._mpi_calibration import Calibration, calibrate


class Alone:
    """A communicator of mpi4py with one rank."""

    def Barrier(self) -> None:  # noqa: N802 - mpi4py's name
        pass

    def Allreduce(self, given: np.ndarray, result: np.ndarray, op: Any) -> None:  # noqa: N802 - mpi4py's name
        result[...] = given


@pytest.mark.parametrize(
    ("blocking_s", "nonblocking_s", "faster", "overlap"),
    [(1.0, 0.9, True, True), (1.0, 1.1, False, True), (1.0, 2.6, False, False), (1.0, 1.0, False, True)],
)
def test_choice(blocking_s: float, nonblocking_s: float, faster: bool, overlap: bool) -> None:
    calibration = Calibration(blocking_s, nonblocking_s)

    assert (calibration.nonblocking_is_faster, calibration.overlap_pays) == (faster, overlap)


def test_slower_way_is_found() -> None:
    calibration = calibrate(Alone(), None, lambda buffer: time.sleep(0.02), lambda buffer: None)

    assert calibration.blocking_s >= 0.02
    assert calibration.nonblocking_is_faster
