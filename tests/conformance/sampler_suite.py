"""What every sampler must do, each a function of what makes one; tests/conformance/test_samplers.py runs them all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.input_pipeline import InputPipeline
from deep500.training.sampler import Sampler

#: Makes a sampler: ``make(dataset, batch_size, seed, drop_last_batch, transformations)``.
Make = Callable[[NumpyDataset, int, int, bool, Iterable[Any]], Sampler]

#: The probability that a statistical test fails although the law holds.
ERROR = 1e-6


def numbered(count: int) -> NumpyDataset:
    """Samples that tell their number, in three classes."""
    return NumpyDataset(np.arange(count), "x", np.arange(count) * 7 % 3, "y")


class StreamRecorder:
    """A transformation that puts the first number of its stream into the minibatch."""

    def __init__(self, name: str) -> None:
        self.name = name

    def set_random_stream(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        first = self.stream.bit_generator.random_raw()
        return {**batch, self.name: np.full(len(batch["x"]), first, np.uint64)}


def served(sampler: Sampler, epochs: int = 1) -> list[list[list[list[int]]]]:
    """Return epochs of minibatches of arrays, as lists, and leave the sampler at the start of the next epoch."""
    found = []
    for _ in range(epochs):
        found.append([[values.tolist() for values in batch.values()] for batch in sampler])
        sampler.reset()
    return found


def samples_of(epoch: list[list[list[int]]]) -> list[int]:
    return [sample for batch in epoch for sample in batch[0]]


def check_epochs(make: Make, count: int, batch_size: int, seed: int, drop: bool, epochs: int = 2) -> None:
    """Each epoch has all minibatches that it says, of the right sizes, with each sample at most, or exactly, once."""
    sampler = make(numbered(count), batch_size, seed, drop, ())
    for epoch in served(sampler, epochs):
        sizes = [len(batch[0]) for batch in epoch]
        assert len(epoch) == len(sampler)
        assert all(size == batch_size for size in sizes[: -1 if not drop else None])
        assert not sizes or 0 < sizes[-1] <= batch_size
        samples = samples_of(epoch)
        assert len(samples) == sampler.sample_count
        assert all(0 <= sample < count for sample in samples)
        if sampler.each_sample_once:
            assert len(set(samples)) == len(samples)
            assert len(samples) == (count - count % batch_size if drop else count)
        labels = [label for batch in epoch for label in batch[1]]
        assert labels == [sample * 7 % 3 for sample in samples]


def check_repeats(make: Make, count: int, batch_size: int, seed: int, drop: bool) -> None:
    """The seed alone decides: another sampler, also one that reads in another order, serves the same."""
    transformations = (StreamRecorder("a"),)
    first, second = (make(numbered(count), batch_size, seed, drop, transformations) for _ in range(2))
    epochs = served(first, 2)
    second.reset()
    for position in reversed(range(len(second))):
        built = second.batch_at(position)
        assert [values.tolist() for values in built.values()] == epochs[1][position]
    assert (second.epoch, second.position) == (1, 0)
    second.epoch = 0
    assert served(second, 2) == epochs


def check_streams(make: Make, count: int, batch_size: int, seed: int, drop: bool) -> None:
    """Each transformation of each minibatch of each epoch draws from a stream of its own, not the order's either."""
    sampler = make(numbered(count), batch_size, seed, drop, (StreamRecorder("a"), StreamRecorder("b")))
    epochs = served(sampler, 3)
    firsts = [values[0] for epoch in epochs for batch in epoch for values in batch[2:]]
    assert len(firsts) == 6 * len(sampler)
    assert len(set(firsts)) == len(firsts)


def check_resume(
    make: Make, count: int, batch_size: int, seed: int, drop: bool, at: float, workers: tuple[int, int], kind: str
) -> None:
    """What goes on from a state, saved anywhere in an epoch, serves what the uninterrupted sampler serves.

    Args:
        make: Makes the sampler.
        count: Samples of the data set.
        batch_size: Samples a minibatch.
        seed: Seed.
        drop: Whether a last, smaller minibatch is left out.
        at: Where in the second epoch it is saved, from 0 to 1.
        workers: Number of workers before and after.
        kind: Kind of workers.
    """

    def pipeline(number: int) -> InputPipeline:
        return InputPipeline(make(numbered(count), batch_size, seed, drop, (StreamRecorder("a"),)), number, kind)

    whole = make(numbered(count), batch_size, seed, drop, (StreamRecorder("a"),))
    expected = served(whole, 3)
    done = round(at * len(whole))
    with pipeline(workers[0]) as before, pipeline(workers[1]) as after:
        served(before)
        begun = [[values.tolist() for values in next(before).values()] for _ in range(done)]
        state = json.loads(json.dumps(before.state()))
        next(before, None)  # what is done after the state was taken does not change it
        after.restore(state)
        rest = served(after, 2)
    assert begun == expected[1][:done]
    assert rest == [expected[1][done:], expected[2]]


def check_places(make: Make, epochs: int = 4000) -> None:
    """A sampler that shuffles puts each sample in each minibatch, the dropped one too, equally often."""
    from scipy.stats import chisquare  # here, as worker processes import this module

    count, batch_size = 7, 3
    sampler = make(numbered(count), batch_size, 11, False, ())
    orders = np.array([sampler.order(epoch) for epoch in range(epochs)])
    for first, last in ((0, 3), (3, 6), (6, 7)):
        seen = np.bincount(orders[:, first:last].reshape(-1), minlength=count)
        # Samples of one minibatch exclude each other, which makes counts more even than independent draws: the test
        # fails less often than its error says.
        assert chisquare(seen).pvalue > ERROR / 3
