"""The settings of a scaling run, its order, and the division of minibatches."""

from __future__ import annotations

import pytest

from deep500.core.errors import MeasurementError
from deep500.distributed.scaling import design as module
from deep500.distributed.scaling.design import ScalingDesign, batch_of_rank, ranks_of_text


def test_order_holds_every_launch_once_round_by_round() -> None:
    design = ScalingDesign((1, 2, 4), launches=5, seed=3)
    order = design.order()

    assert [launch for launch, _ in order] == [launch for launch in range(5) for _ in range(3)]
    assert all(sorted(ranks for at, ranks in order if at == launch) == [1, 2, 4] for launch in range(5))
    assert len({tuple(ranks for at, ranks in order if at == launch) for launch in range(5)}) > 1
    assert order == ScalingDesign((1, 2, 4), launches=5, seed=3).order()


def test_document_of_the_settings_and_back() -> None:
    design = ScalingDesign((1, 2), "weak", 2, 7, 1, 3, 4, 5.0)

    assert ScalingDesign.from_dict(design.to_dict()) == design
    assert design.base == 1


def test_oversubscribed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_processors", lambda: 4)

    assert [ScalingDesign((1,)).oversubscribed(ranks) for ranks in (1, 4, 5)] == [False, False, True]
    assert ScalingDesign((1,), threads=2).oversubscribed(3)


def test_processors_are_those_of_this_process() -> None:
    assert module.available_processors() >= 1


def test_numbers_of_ranks() -> None:
    assert ranks_of_text("4, 1,2,2") == (1, 2, 4)
    for text in ("", "1,,2", "two", "-1", "1.5", "9" * 30):
        with pytest.raises(MeasurementError, match=r"such as 1,2,4"):
            ranks_of_text(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": ()}, "such as 1,2,4"),
        ({"ranks": (0, 1)}, "ranks was given as 0"),
        ({"ranks": (2, 1)}, "ascending"),
        ({"ranks": (1, 100_000)}, "65536"),
        ({"mode": "stong"}, "Did you mean 'strong'"),
        ({"launches": 0}, "launches"),
        ({"steps": 0}, "steps"),
        ({"warm_up": -1}, "warm_up"),
        ({"threads": 0}, "threads"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_refusals(arguments: dict, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        ScalingDesign(**{"ranks": (1, 2), **arguments})


def test_minibatch_of_a_rank() -> None:
    assert batch_of_rank(32, 4, "strong") == 8
    assert batch_of_rank(30, 4, "weak") == 30
    with pytest.raises(MeasurementError, match=r"nearest for 4: 28 and 32.*batch_size=32"):
        batch_of_rank(30, 4, "strong")
    with pytest.raises(MeasurementError, match="nearest for 4: 4"):
        batch_of_rank(3, 4, "strong")
