from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.sampler import Sampler
from deep500.training.samplers.choice import ChoiceSampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.samplers.stratified import StratifiedSampler
from deep500.training.training_event import SamplerEvent
from deep500.training.validation.sampler_check import test_sampler as check_sampler
from tests.unit.training.support import clusters


class Twice(ShuffleSampler):
    def order(self, epoch: int) -> np.ndarray:
        order = super().order(epoch)
        order[1] = order[0]
        return order


class Unlike(ShuffleSampler):
    """Draws from what ran before."""

    calls = 0

    def _take(self, position: int) -> dict[str, np.ndarray]:
        self.calls += 1
        batch = super()._take(position)
        return {**batch, "input": batch["input"] + self.calls}


class Lopsided(ChoiceSampler):
    def order(self, epoch: int) -> np.ndarray:
        return super().order(epoch) // 2


SAMPLERS: list[Any] = [
    lambda data: OrderedSampler(data, 7),
    lambda data: ShuffleSampler(data, 7, seed=1),
    lambda data: ShuffleSampler(data, 7, drop_last_batch=True),
    lambda data: StratifiedSampler(data, 7),
    lambda data: ChoiceSampler(data, 7, replacement=True, samples=50),
    lambda data: ChoiceSampler(data, 7, samples=11),
]


@pytest.mark.parametrize("make", SAMPLERS)
def test_right_samplers_pass_and_stay_where_they_were(make: Any) -> None:
    sampler: Sampler = make(clusters(30))
    next(sampler)
    state = sampler.state()

    report = check_sampler(sampler, epochs=3)

    assert report.passed
    assert sampler.state() == state
    assert sum(report.class_counts) == 3 * report.samples_an_epoch
    assert "PASSED" in str(report)


def test_labels_are_counted() -> None:
    report = check_sampler(ShuffleSampler(clusters(30), 10))

    assert report.samples_an_epoch == 30
    assert report.class_counts == (20, 20, 20)
    assert report.dataset_counts == (10, 10, 10)
    assert report.bias == 0.0
    assert report.each_sample_once is True


def test_sample_that_comes_twice_is_found() -> None:
    with pytest.raises(TrainingError, match="yielded 27 different samples of 30 in 28 draws"):
        check_sampler(Twice(clusters(30), 7))


def test_what_depends_on_the_past_is_found() -> None:
    report = check_sampler(Unlike(clusters(30), 7), raise_on_failure=False)

    assert any("yielded again, differs in 'input'" in text for text in report.failures)
    assert any("from the data set's samples" in text for text in report.failures)


def test_law_is_tested() -> None:
    weights = np.arange(30.0)
    right = ChoiceSampler(clusters(30), 16, weights=weights, replacement=True, samples=600)
    wrong = Lopsided(clusters(30), 16, replacement=True, samples=600)

    assert (check_sampler(right).law_p_value or 0.0) > 1e-6
    with pytest.raises(TrainingError, match="do not follow the stated law"):
        check_sampler(wrong)
    with pytest.raises(TrainingError, match="probability is 0"):
        check_sampler(right, law=np.eye(30)[3])
    with pytest.raises(TrainingError, match="a probability for each of the 30 samples"):
        check_sampler(right, law=[1.0])
    few = check_sampler(ChoiceSampler(clusters(30), 2, replacement=True, samples=2), epochs=1)
    assert few.law_p_value is None
    assert "too few" in few.notes[0]


def test_first_minibatch_is_compared() -> None:
    data = clusters(30)
    assert check_sampler(OrderedSampler(data, 7), data[0:7]).passed
    with pytest.raises(TrainingError, match="first minibatch differs in 'input'"):
        check_sampler(OrderedSampler(data, 7), data[1:8])


def test_events_listen_for_the_time_of_the_test() -> None:
    class Counting(SamplerEvent):
        told = 0

        def after_sampling(self, sampler: Sampler, samples: Any) -> None:
            self.told += 1

    event, sampler = Counting(), OrderedSampler(clusters(30), 10)
    check_sampler(sampler, events=[event], epochs=1)

    assert event.told == 6  # the epoch, and again
    assert not sampler.events


def test_what_is_refused() -> None:
    with pytest.raises(TrainingError, match="accepted is a sampler"):
        check_sampler([1])  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="objects of TestMetric"):
        check_sampler(OrderedSampler(clusters(), 7), metrics=["bias"])  # type: ignore[list-item]
