"""What several ranks measure in a pass, as that of one process."""

from __future__ import annotations

import math
from typing import Any

import pytest

from deep500.training._pass_parts import merged_steps, merged_tests, record_of


def parts(losses: list[float], sizes: list[int], **more: Any) -> dict[str, Any]:
    ranks = [1] * len(sizes)
    return {"losses": losses, "sizes": sizes, "ranks": ranks, "correct": 1, "counted": 2, "elapsed_s": 1.0, **more}


def test_the_loss_of_a_step_is_the_mean_over_the_samples_of_all_ranks() -> None:
    merged = merged_steps([parts([1.0, 4.0], [2, 1]), parts([3.0, 7.0], [2, 3], elapsed_s=2.5)])

    assert merged == {"losses": [2.0, 6.25], "sizes": [4, 4], "correct": 2, "counted": 4, "elapsed_s": 2.5}
    assert record_of(merged, complete=True).loss == pytest.approx((2 * 4 + 6.25 * 4) / 8)


def test_of_ranks_that_were_lost_the_sizes_count() -> None:
    """Three ranks took the first step, and two of them the second one."""
    merged = merged_steps([parts([1.0, 4.0], [2, 3], ranks=[3, 2]), parts([3.0, 7.0], [2, 3], ranks=[3, 2])])

    assert (merged["losses"], merged["sizes"]) == ([2.0, 5.5], [6, 6])
    alone = merged_steps([parts([1.0, 4.0], [2, 3], ranks=[3, 1])])
    assert (alone["losses"], alone["sizes"]) == ([1.0, 4.0], [6, 3])


def test_steps_without_a_loss_have_none() -> None:
    merged = merged_steps([parts([], [2]), parts([1.0], [2])])

    assert merged["losses"] == []
    assert record_of(merged, complete=True).loss is None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_a_test_dealt_out_in_turn_has_the_bits_of_one_process(size: int) -> None:
    losses, sizes = [0.1, 0.7, 1e-3, 5.0, 0.3], [8, 8, 8, 8, 3]
    dealt = [parts(losses[rank::size], sizes[rank::size]) for rank in range(size)]

    merged = merged_tests(dealt)

    assert (merged["losses"], merged["sizes"]) == (losses, sizes)
    assert record_of(merged, complete=True).loss == record_of(parts(losses, sizes), complete=True).loss


def test_a_test_by_rank_0_alone_is_that_test() -> None:
    alone, nothing = parts([1.0, 2.0], [4, 4]), parts([], [], correct=0, counted=0)

    merged = merged_tests([alone, nothing, nothing])

    assert (merged["losses"], merged["sizes"], merged["correct"], merged["counted"]) == ([1.0, 2.0], [4, 4], 1, 2)


def test_infinities_of_both_signs_are_no_number() -> None:
    loss = record_of(merged_steps([parts([math.inf], [1]), parts([-math.inf], [1])]), complete=True).loss

    assert loss is not None
    assert math.isnan(loss)
