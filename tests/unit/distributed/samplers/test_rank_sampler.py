"""Distributed samplers: every sample exactly once over the ranks, whatever the sizes are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep500.core.errors import CheckpointError, TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.distributed.communicators._thread_exchange import ThreadExchange
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.samplers._rank_sampler import RankSampler
from deep500.distributed.samplers.distributed_sampler import DistributedSampler
from deep500.distributed.samplers.partitioned_distributed_sampler import PartitionedDistributedSampler
from deep500.training.samplers.shuffle import ShuffleSampler

KINDS = [DistributedSampler, PartitionedDistributedSampler]


def dataset(count: int) -> NumpyDataset:
    return NumpyDataset(np.arange(count), "x", np.arange(count) % 3, "y")


def samplers(kind: type[RankSampler], count: int, ranks: int, batch_size: int = 2, **options: Any) -> list[RankSampler]:
    exchange = ThreadExchange(ranks)
    communicators = [LocalCommunicator(rank, exchange) for rank in range(ranks)]
    return [kind(dataset(count), batch_size, communicator, **options) for communicator in communicators]


def served(sampler: RankSampler) -> list[list[int]]:
    found = [batch["x"].tolist() for batch in sampler]
    sampler.reset()
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**64 - 1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_sample_is_served_once_but_for_the_padding(
    kind: type[RankSampler], count: int, ranks: int, batch_size: int, seed: int, shuffles: bool
) -> None:
    made = samplers(kind, count, ranks, batch_size, seed=seed, shuffles=shuffles)
    for _ in range(2):
        epochs = [served(sampler) for sampler in made]
        assert len({tuple(map(len, epoch)) for epoch in epochs}) == 1, "ranks have minibatches of other sizes"
        samples = []
        for sampler, epoch in zip(made, epochs, strict=True):
            own = [sample for batch in epoch for sample in batch]
            assert sampler.padding_count <= 1
            samples += own[: len(own) - sampler.padding_count]
            assert set(own) <= set(range(count))
        assert sorted(samples) == list(range(count))
        assert sum(sampler.padding_count for sampler in made) == -count % ranks


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_the_other_paddings_do_what_they_say(kind: type[RankSampler], count: int, ranks: int, batch_size: int) -> None:
    made = samplers(kind, count, ranks, batch_size, padding="none")
    assert sorted(sample for sampler in made for batch in served(sampler) for sample in batch) == list(range(count))
    if count < ranks:
        with pytest.raises(TrainingError, match=f"has {count} samples for {ranks} ranks"):
            samplers(kind, count, ranks, batch_size, padding="drop")
        return
    made = samplers(kind, count, ranks, batch_size, padding="drop")
    epochs = [[sample for batch in served(sampler) for sample in batch] for sampler in made]
    assert {len(epoch) for epoch in epochs} == {count // ranks}
    assert len({sample for epoch in epochs for sample in epoch}) == count // ranks * ranks


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_are_shuffled_anew_and_repeat_with_the_seed(kind: type[RankSampler]) -> None:
    first, again = (samplers(kind, 60, 3, seed=4)[1] for _ in range(2))
    epochs = [served(first) for _ in range(3)]
    assert [served(again) for _ in range(3)] == epochs
    assert epochs[0] != epochs[1] != epochs[2]
    other = samplers(kind, 60, 3, seed=5)[1]
    assert served(other) != epochs[0]


def test_a_partition_is_the_same_in_every_epoch() -> None:
    for rank, sampler in enumerate(samplers(PartitionedDistributedSampler, 31, 3, padding="none")):
        for _ in range(2):
            samples = sorted(sample for batch in served(sampler) for sample in batch)
            assert samples == list(range(rank * 31 // 3, (rank + 1) * 31 // 3))


def test_ranks_together_have_the_minibatches_of_one_process() -> None:
    made = samplers(DistributedSampler, 50, 4, 3, seed=9, drop_last_batch=True)
    whole = ShuffleSampler(dataset(50), 12, seed=9)
    for _ in range(2):
        alone = [sorted(batch["x"].tolist()) for batch in whole]
        whole.reset()
        together = [
            sorted(sample for batch in batches for sample in batch) for batches in zip(*map(served, made), strict=True)
        ]
        assert together == alone


class FirstOfStream:
    """Puts the first number of its stream into the minibatch."""

    def set_random_stream(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "first": np.full(len(batch["x"]), self.stream.bit_generator.random_raw(), np.uint64)}


def test_ranks_do_not_augment_alike() -> None:
    made = samplers(DistributedSampler, 12, 3, transformations=[FirstOfStream()])
    firsts = [int(batch["first"][0]) for sampler in made for batch in sampler]
    assert len(set(firsts)) == len(firsts) == 6


def test_a_sampler_goes_on_from_its_state_but_not_on_another_rank() -> None:
    first, other = samplers(DistributedSampler, 20, 2)
    next(first)
    state = first.state()
    rest = served(first)
    again = samplers(DistributedSampler, 20, 2)[0]
    again.restore(state)
    assert served(again) == rest
    with pytest.raises(CheckpointError, match="rank was 0, here it is 1"):
        other.restore(state)
    copy = pickle.loads(pickle.dumps(again))  # as worker processes get it
    assert served(copy) == served(again)


def test_what_is_not_accepted_is_refused() -> None:
    with pytest.raises(TrainingError, match=r"padding was given as 'wrap'; accepted are: repeat, drop, none"):
        samplers(DistributedSampler, 4, 2, padding="wrap")
    with pytest.raises(TrainingError, match="communicator was given as 3; accepted is a Communicator"):
        DistributedSampler(dataset(4), 2, 3)  # type: ignore[arg-type]
