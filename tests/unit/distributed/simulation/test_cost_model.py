"""LogGP's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.cost_model import LogGP

MODEL = LogGP(latency_s=5.0, overhead_s=2.0, gap_s=3.0, gap_s_per_byte=0.5)


def test_message_of_the_paper() -> None:
    assert MODEL.message_s(1) == 2 + 5 + 2  # LogP's small message
    assert MODEL.message_s(11) == 2 + 10 * 0.5 + 5 + 2


def test_spacing_is_the_gap_after_the_bytes_or_the_overhead() -> None:
    assert MODEL.spacing_s(11) == 3 + 10 * 0.5
    assert LogGP(5.0, overhead_s=2.0).spacing_s(11) == 2.0


def test_streaming_of_many() -> None:
    assert np.array_equal(MODEL.streaming_s([1, 3]), [0.0, 1.0])


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_wrong_parameter(wrong: float) -> None:
    with pytest.raises(CommunicationError, match="gap_s = "):
        LogGP(1.0, gap_s=wrong)
