"""A part of any sampler: the minibatches of all ranks together are those of one process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.recipe._rank_share import RankShare
from deep500.training.input_pipeline import InputPipeline
from deep500.training.sampler import Sampler
from deep500.training.samplers.bucket import BucketSampler
from deep500.training.samplers.choice import ChoiceSampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.samplers.stratified import StratifiedSampler

COUNT, BATCH = 53, 12
DATA = NumpyDataset(np.arange(COUNT), "x", np.arange(COUNT) % 3, "label", 3)

SAMPLERS: dict[str, Callable[[bool], Sampler]] = {
    "shuffle": lambda drop: ShuffleSampler(DATA, BATCH, 7, drop),
    "ordered": lambda drop: OrderedSampler(DATA, BATCH, drop_last_batch=drop),
    "bucket": lambda drop: BucketSampler(DATA, BATCH, np.arange(COUNT) % 11, 7, drop),
    "stratified": lambda drop: StratifiedSampler(DATA, BATCH, seed=7, drop_last_batch=drop),
    "choice": lambda drop: ChoiceSampler(DATA, BATCH, 7, drop, samples=30),
}


def shares(name: str, drop: bool, size: int) -> list[RankShare]:
    return run_threads(size, lambda communicator: RankShare(SAMPLERS[name](drop), communicator))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SAMPLERS)
def test_whole_minibatches_are_those_of_one_process(name: str, size: int) -> None:
    one, dealt = SAMPLERS[name](True), shares(name, True, size)

    for _ in range(2):
        expected = [sorted(batch["x"].tolist()) for batch in one]
        found = [sorted(np.concatenate([b["x"] for b in batches]).tolist()) for batches in zip(*dealt, strict=True)]
        assert found == expected
        for sampler in (one, *dealt):
            sampler.reset()


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("name", SAMPLERS)
def test_without_dropping_each_sample_is_served_and_all_steps_are_of_equal_size(name: str, size: int) -> None:
    dealt = shares(name, False, size)
    served = [np.concatenate([batch["x"] for batch in share]).tolist() for share in dealt]

    assert len({len(samples) for samples in served}) == 1
    assert len({len(share) for share in dealt}) == 1
    assert {x for samples in served for x in samples} == set(SAMPLERS[name](False).order(0).tolist())
    padded = sum(share.padding_count for share in dealt)
    assert sum(map(len, served)) == SAMPLERS[name](False).samples_an_epoch + padded


@pytest.mark.parametrize("count", [63, 64, 65, 31])
def test_a_dropped_rest_makes_no_step_on_several_ranks_either(count: int) -> None:
    """63 samples are one minibatch of 32, and not two of 16 on each of two ranks."""
    data = NumpyDataset(np.arange(count), "x")
    if count < 32:
        with pytest.raises(TrainingError, match="no minibatch is left"):
            ShuffleSampler(data, 32)
        return
    dealt = run_threads(2, lambda c: RankShare(ShuffleSampler(data, 32), c))

    assert [len(share) for share in dealt] == [count // 32] * 2


def noise(communicator: Communicator, workers: int = 0) -> list[Any]:
    class Noise:
        def set_random_stream(self, stream: np.random.Generator) -> None:
            self.stream = stream

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {"x": self.stream.random(len(batch["x"]))}

    share: Sampler = RankShare(ShuffleSampler(DATA, BATCH, 7), communicator, [Noise()])
    if workers:
        with InputPipeline(share, workers) as pipeline:
            return [batch["x"].tolist() for batch in pipeline]
    return [batch["x"].tolist() for batch in share]


def test_augmentations_draw_from_streams_of_the_ranks_own() -> None:
    alone = run_threads(1, noise)[0]
    plain = ShuffleSampler(DATA, BATCH, 7)
    two = run_threads(2, noise)

    assert two[0] != two[1]
    assert two == run_threads(2, noise)
    assert run_threads(2, lambda c: noise(c, workers=2)) == two
    assert len(alone) == len(plain)


def test_it_can_be_sent_to_worker_processes() -> None:
    share = shares("shuffle", True, 2)[1]

    assert [b["x"].tolist() for b in pickle.loads(pickle.dumps(share))] == [b["x"].tolist() for b in share]


def test_another_rank_or_another_sampler_does_not_go_on() -> None:
    first, second = shares("shuffle", True, 2)
    with pytest.raises(CheckpointError, match="rank"):
        second.restore(first.state())
    other = run_threads(2, lambda c: RankShare(ShuffleSampler(DATA, BATCH, 8), c))[0]
    with pytest.raises(CheckpointError, match="seed"):
        other.restore(first.state())
