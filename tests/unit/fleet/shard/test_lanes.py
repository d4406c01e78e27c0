from __future__ import annotations

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.shard.lanes import Lane, lanes_of_texts, smallest_that_fits


def test_texts() -> None:
    lanes = lanes_of_texts(["4x3", "2x3:12", "4x1@3h", "8 x 2 : 4 @ 90m", "0x1", "0.5x2@45s"])
    assert lanes == (
        Lane(4, 3, 3), Lane(2, 3, 12), Lane(4, 1, 1, 10800), Lane(8, 2, 4, 5400), Lane(0, 1, 1), Lane(0.5, 2, 2, 45),
    )  # fmt: skip
    assert [lane.name for lane in lanes] == [
        "4-GPU", "2-GPU", "4-GPU every 3 h", "8-GPU every 1.5 h", "0-GPU", "0.5-GPU every 45 s",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "4", "x3", "4x", "4x3:", "4x3@3", "4x3@h", "-1x3", "4x3:2:1", "4x3@3w"])
def test_what_is_no_lane(text: str) -> None:
    with pytest.raises(FleetError, match="GPUSxSHARDS"):
        lanes_of_texts([text])


@pytest.mark.parametrize("text", ["4x0", "4x1:0", "4x1@0h"])
def test_numbers_out_of_range(text: str) -> None:
    with pytest.raises(FleetError, match="cannot be"):
        lanes_of_texts([text])


def test_lanes_of_one_kind() -> None:
    with pytest.raises(FleetError, match="two lanes of 4-GPU runners"):
        lanes_of_texts(["4x3", "4x1"])
    assert len(lanes_of_texts(["4x3", "4x1@3h"])) == 2


def test_the_smallest_that_fits() -> None:
    lanes = lanes_of_texts(["8x1@1h", "4x1", "2x1", "3x1@1h"])
    chosen = [smallest_that_fits(lanes, gpus) for gpus in (0, 2, 3, 4, 5, 9)]
    assert [lane and lane.gpus for lane in chosen] == [2, 2, 4, 4, 8, None]


@pytest.mark.parametrize("text", ["2x1000000000", "2x1:1000000000", "99999999x1"])
def test_more_shards_runners_or_gpus_than_can_be_planned_are_refused(text: str) -> None:
    with pytest.raises(FleetError, match="accepted are up to"):
        lanes_of_texts([text])


def test_what_cannot_be_is_named_without_what_was_not_given() -> None:
    with pytest.raises(FleetError, match=r"^A lane of 0 shards on 1 runner with 1 GPU each cannot be"):
        Lane(1, 0, 1)
    with pytest.raises(FleetError, match="with 2 GPUs each, every 0 s, cannot be"):
        Lane(2, 1, 1, 0.0)
