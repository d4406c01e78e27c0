"""Every sampler, by one suite: each sample once an epoch or its law, the same for any workers and framework."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from deep500.core.errors import TrainingError
from deep500.datasets.loading import load_dataset
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.training.catalogue import SAMPLERS
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.input_pipeline import InputPipeline
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.sampler import Batch, Sampler
from deep500.training.samplers.bucket import BucketSampler
from deep500.training.samplers.choice import ChoiceSampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.samplers.stratified import StratifiedSampler
from deep500.training.trainer import Trainer
from tests.conformance import sampler_suite as suite
from tests.conformance.sampler_suite import ERROR, Make, numbered


def weights_of(count: int) -> np.ndarray:
    return (np.arange(count) % 4).astype(float) + (np.arange(count) == 0)


def check_draws(make: Make) -> None:
    """Draws with replacement follow the weights, and the second of two draws is independent of the first."""
    sampler = make(numbered(6), 2, 5, True, ())
    draws = np.array([sampler.order(epoch) for epoch in range(6000)])
    law = weights_of(6) / weights_of(6).sum()
    assert (np.bincount(draws.reshape(-1), minlength=6)[law == 0] == 0).all()
    pairs = np.bincount(draws[:, 0] * 6 + draws[:, 1], minlength=36)
    expected = np.outer(law, law).reshape(-1)
    assert chisquare(pairs[expected > 0], 6000 * expected[expected > 0]).pvalue > ERROR


def check_draws_without_replacement(make: Make) -> None:
    """The first two draws have the probabilities of drawing one after the other: w_i w_j / (1 - w_i)."""
    sampler = make(numbered(6), 1, 5, True, ())
    law = weights_of(6) / weights_of(6).sum()
    draws = np.array([sampler.order(epoch) for epoch in range(6000)])
    assert draws.shape[1] == 4
    assert all(len(set(row)) == 4 for row in draws.tolist())
    pairs = np.bincount(draws[:, 0] * 6 + draws[:, 1], minlength=36)
    expected = np.outer(law / (1 - law), law)
    np.fill_diagonal(expected, 0)
    expected = expected.reshape(-1)
    assert chisquare(pairs[expected > 0], 6000 * expected[expected > 0]).pvalue > ERROR
    assert pairs[expected == 0].sum() == 0


def check_similar_lengths(make: Make) -> None:
    """Lengths differ less within minibatches than anywhere, full or not, and minibatches come in no order of length."""
    sampler = make(numbered(203), 10, 3, False, ())
    means, spreads = [], []
    for epoch in range(30):
        order = sampler.order(epoch)
        lengths = [order[start : start + 10] % 50 for start in range(0, 203, 10)]
        spreads += [np.ptp(part) for part in lengths]
        means.append([part.mean() for part in lengths[:-1]])
    assert np.mean(spreads) < 15  # of shuffled samples: 40
    assert abs(np.corrcoef(np.arange(20), np.mean(means, axis=0))[0, 1]) < 0.75
    assert len({tuple(sampler.order(epoch)[-3:]) for epoch in range(30)}) == 30


def check_shares(make: Make) -> None:
    """Each minibatch has of each class its share, rounded down or up."""
    rng = np.random.default_rng(0)
    for count, batch_size in ((100, 8), (17, 5), (9, 20), (64, 1)):
        classes = rng.integers(0, 5, count) ** 2
        sampler = make(NumpyDataset(np.arange(count), "x", classes, "y"), batch_size, 2, False, ())
        for batch in sampler:
            for number in np.unique(classes):
                share = len(batch["y"]) * (classes == number).sum() / count
                assert np.floor(share) <= (batch["y"] == number).sum() <= np.ceil(share)


def check_in_order(make: Make) -> None:
    assert make(numbered(7), 3, 1, False, ()).order(5).tolist() == list(range(7))


@dataclass(frozen=True)
class Entry:
    """How a sampler is made, and what it promises besides.

    Attributes:
        make: Makes one; see ``sampler_suite.Make``.
        law: Checks what else it promises.
    """

    make: Make
    law: Callable[[Make], None]


def maker(kind: Callable[..., Sampler], arguments: Callable[[int], dict[str, Any]] = lambda count: {}) -> Make:
    """Return what makes a sampler whose further arguments depend on the number of samples."""

    def make(dataset: NumpyDataset, batch_size: int, seed: int, drop: bool, transformations: Iterable[Any]) -> Sampler:
        more = arguments(len(dataset))
        return kind(dataset, batch_size, seed=seed, drop_last_batch=drop, transformations=transformations, **more)

    return make


#: The samplers, by the name of their file; further entries ``name:variant`` are other ways to use one.
ENTRIES: dict[str, Entry] = {
    "bucket": Entry(maker(BucketSampler, lambda count: {"lengths": np.arange(count) % 50}), check_similar_lengths),
    "choice": Entry(maker(ChoiceSampler), suite.check_places),
    "choice:weighted": Entry(
        maker(ChoiceSampler, lambda count: {"weights": weights_of(count), "replacement": True}), check_draws
    ),
    "choice:few": Entry(
        maker(
            ChoiceSampler,
            lambda count: {"weights": weights_of(count), "samples": max(1, np.count_nonzero(weights_of(count)) - 1)},
        ),
        check_draws_without_replacement,
    ),
    "ordered": Entry(maker(OrderedSampler), check_in_order),
    "shuffle": Entry(maker(ShuffleSampler), suite.check_places),
    "stratified": Entry(maker(StratifiedSampler), check_shares),
}

every_entry = pytest.mark.parametrize("name", sorted({*SAMPLERS.names(), *ENTRIES}))
sizes = {
    "count": st.integers(1, 40),
    "batch_size": st.integers(1, 45),
    "seed": st.integers(0, 2**64 - 1),
    "drop": st.booleans(),
}


def entry(name: str) -> Entry:
    if name not in ENTRIES:
        pytest.fail(
            f"deep500/training/samplers/{name}.py has no entry in {__name__}.ENTRIES. Add "
            f"'{name}': Entry(maker(<its class>, <further arguments>), <a check of what it promises>); "
            f"suite.check_places is the check of a sampler that shuffles."
        )
    return ENTRIES[name]


def applied(check: Callable[..., None], make: Make, count: int, batch_size: int, drop: bool, **more: Any) -> None:
    """Run a check, unless no minibatch would be left, which must be said."""
    if drop and batch_size > make(numbered(count), 1, 0, drop, ()).samples_an_epoch:
        with pytest.raises(TrainingError, match="no minibatch is left"):
            make(numbered(count), batch_size, 0, drop, ())
        return
    check(make, count=count, batch_size=batch_size, drop=drop, **more)


@every_entry
@given(**sizes)
@settings(max_examples=60)
def test_epochs(name: str, count: int, batch_size: int, seed: int, drop: bool) -> None:
    applied(suite.check_epochs, entry(name).make, count, batch_size, drop, seed=seed)


@every_entry
@given(**sizes)
@settings(max_examples=30)
def test_seed_alone_decides(name: str, count: int, batch_size: int, seed: int, drop: bool) -> None:
    applied(suite.check_repeats, entry(name).make, count, batch_size, drop, seed=seed)
    applied(suite.check_streams, entry(name).make, count, batch_size, drop, seed=seed)


@every_entry
@given(**sizes, at=st.floats(0, 1), workers=st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=40)
def test_resume_with_any_number_of_threads(
    name: str, count: int, batch_size: int, seed: int, drop: bool, at: float, workers: tuple[int, int]
) -> None:
    more = {"seed": seed, "at": at, "workers": workers, "kind": "thread"}
    applied(suite.check_resume, entry(name).make, count, batch_size, drop, **more)


@every_entry
def test_resume_with_any_number_of_processes(name: str) -> None:
    suite.check_resume(entry(name).make, 22, 4, 6, False, at=0.5, workers=(1, 2), kind="process")


@every_entry
def test_law(name: str) -> None:
    entry(name).law(entry(name).make)


@pytest.mark.parametrize("name", ["bucket", "stratified"])
def test_no_sample_is_left_out_more_often_than_others(name: str) -> None:
    count = 13
    sampler = entry(name).make(numbered(count), 5, 0, False, ())
    left_out = np.bincount(np.concatenate([sampler.order(epoch)[10:] for epoch in range(4000)]), minlength=count)
    # Three of 13 in each epoch: their counts are no more uneven than those of independent draws, for each class alike.
    assert chisquare(left_out).pvalue > ERROR


@functools.cache
def digest(framework: str, name: str, workers: int) -> tuple[str, int]:
    """Train an epoch; return the hash of what the network was fed."""
    digits = load_dataset("digits")[0]
    train_set = NumpyDataset(digits[:50]["input"], "input", digits[:50]["label"], "label", classes=10)
    network = create_model("mlp", shape=(1, 8, 8), hidden=(8,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = FRAMEWORKS.get(framework).from_model(network)
    sampler = entry(name).make(train_set, 16, 1, False, ())
    event = BatchHashEvent()
    with InputPipeline(sampler, workers) as pipeline:
        Trainer(pipeline, None, executor, GradientDescent(executor, "loss", 0.1)).run_loop(1, [event])
    return event.digest, event.batches


@every_entry
@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_every_framework_is_fed_the_same(name: str, framework: str) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    workers = FRAMEWORKS.names().index(framework)  # another number for each
    assert digest(framework, name, workers) == digest("reference", name, 0)
    assert digest(framework, name, workers)[1] > 0


# --- faults that the suite must find ---------------------------------------------------------------------------------


class DropsLastSample(OrderedSampler):
    def order(self, epoch: int) -> Any:
        return super().order(epoch)[:-1]


class RepeatsASample(ShuffleSampler):
    def order(self, epoch: int) -> Any:
        order = super().order(epoch)
        order[-1] = order[0]
        return order


class SharesItsStream(ShuffleSampler):
    """All minibatches of an epoch draw from streams that begin alike."""

    def _transformed(self, batch: Batch, position: int) -> Batch:
        return super()._transformed(batch, 0)


class CountsOn(ShuffleSampler):
    """The order depends on how often it was asked for, not on the epoch."""

    asked = 0

    def order(self, epoch: int) -> Any:
        self.asked += 1
        return super().order(self.asked)


class ForgetsItsPosition(ShuffleSampler):
    def restore(self, state: Any) -> None:
        super().restore({**state, "position": 0})


class Biased(ShuffleSampler):
    """Sample 0 is left where it was a little too often."""

    def order(self, epoch: int) -> Any:
        order = super().order(epoch)
        if epoch % 5 == 0:
            place = int(np.flatnonzero(order == 0)[0])
            order[[0, place]] = order[[place, 0]]
        return order


class WrongWeights(ChoiceSampler):
    """Weighs differently than it was told."""

    def order(self, epoch: int) -> Any:
        self.weights = weights_of(len(self.dataset)) ** 1.5
        return super().order(epoch)


CHECKS: dict[str, Callable[[Make], None]] = {
    "epochs": lambda make: suite.check_epochs(make, 10, 3, 1, False),
    "repeats": lambda make: suite.check_repeats(make, 10, 3, 1, False),
    "streams": lambda make: suite.check_streams(make, 10, 3, 1, False),
    "resume": lambda make: suite.check_resume(make, 10, 3, 1, False, 0.5, (0, 1), "thread"),
    "places": suite.check_places,
    "draws": check_draws,
}


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (DropsLastSample, "epochs"),
        (RepeatsASample, "epochs"),
        (SharesItsStream, "streams"),
        (CountsOn, "repeats"),
        (CountsOn, "resume"),
        (ForgetsItsPosition, "resume"),
        (Biased, "places"),
    ],
)
def test_planted_faults_are_found(fault: Any, check: str) -> None:
    with pytest.raises(AssertionError):
        CHECKS[check](maker(fault))
    CHECKS[check](maker(ShuffleSampler))


def test_planted_wrong_weights_are_found() -> None:
    arguments = lambda count: {"weights": weights_of(count), "replacement": True}  # noqa: E731
    with pytest.raises(AssertionError):
        check_draws(maker(WrongWeights, arguments))


def test_a_sampler_without_an_entry_fails_with_what_to_add() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"samplers/importance\.py has no entry.*Add 'importance': Entry"):
        entry("importance")
