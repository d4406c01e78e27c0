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


# --- Ranks that are left when others are lost. ---


def left(dealt: list[RankShare], lost: int) -> list[RankShare]:
    """Return the shares of the ranks that are left, dealt anew."""
    others = [share for rank, share in enumerate(dealt) if rank != lost]

    def work(communicator: Communicator) -> None:
        for _ in range(2):  # as where another one fails before the next minibatch
            others[communicator.rank].deal_anew(communicator)

    run_threads(len(others), work)
    return others


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("taken", [0, 1, 2])
@pytest.mark.parametrize(("size", "kept"), [(4, 12), (3, 12), (6, 10)])
@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_left_of_an_epoch_is_dealt_out_to_those_that_are_left(
    name: str, size: int, kept: int, taken: int, drop: bool
) -> None:
    """Of minibatches of 12, five ranks have 2 each; three and two ranks have the 12 again."""
    one, dealt = SAMPLERS[name](False), shares(name, drop, size)
    order = one.order(0).tolist()
    before = [batch for share in dealt for batch in [next(share)["x"].tolist() for _ in range(taken)]]
    others = left(dealt, 1)
    after = [[batch["x"].tolist() for batch in share] for share in others]

    assert sorted(x for batch in before for x in batch) == sorted(order[: 12 * taken])
    rest = order[12 * taken :]
    served = [x for batches in after for batch in batches for x in batch]
    assert {len(batch) for batches in after for batch in batches[:-1]} <= {kept // (size - 1)}
    assert len({tuple(map(len, batches)) for batches in after}) == 1  # all ranks make the same steps
    if drop:
        assert len(served) == len(set(served)) or name == "choice"
        assert set(served) <= set(rest)
        assert len(rest) - len(served) < kept
    else:
        assert set(served) == set(rest)
        assert len(served) - len(rest) < size - 1
        assert sum(share.padding_count for share in others) == len(served) - len(rest)
    assert {share.minibatches_taken for share in others} == {taken + len(after[0])}
    for share in others:
        share.reset()
    again = [x for share in others for batch in share for x in batch["x"].tolist()]
    if not drop:
        assert set(again) == set(SAMPLERS[name](False).order(1).tolist())
    assert {share.minibatches_taken for share in others} == {taken + len(after[0]) + len(others[0])}


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_share_that_was_dealt_anew_goes_on_from_its_state(epoch: int) -> None:
    dealt = shares("shuffle", False, 6)
    for share in dealt:
        for _ in range(2):
            next(share)
    others = left(dealt, 0)
    for share in others:
        if epoch:
            share.reset()
        next(share)
    states = [share.state() for share in others]
    fresh = run_threads(5, lambda c: RankShare(SAMPLERS["shuffle"](False), c))
    for share, state in zip(fresh, states, strict=True):
        share.restore(state)

    assert [share.minibatches_taken for share in fresh] == [share.minibatches_taken for share in others]
    for _ in range(2):
        for share, other in zip(fresh, others, strict=True):
            assert [b["x"].tolist() for b in share] == [b["x"].tolist() for b in other]
            share.reset()
            other.reset()


def test_a_state_of_another_form_changes_nothing() -> None:
    share = shares("shuffle", False, 2)[0]
    state = share.state()
    for changed in ({"dealt": {"epochs": 1}}, {"dealt": 3}, {"epoch": -1, "dealt": {"epoch": 0, "position": 1}}):
        with pytest.raises(CheckpointError):
            share.restore({**state, **changed})
        assert share.state() == state


def test_augmentations_of_a_rank_that_has_another_number_are_those_of_that_number() -> None:
    dealt = shares("shuffle", True, 3)
    others, fresh = left(dealt, 0), shares("shuffle", True, 2)

    assert [share.seed for share in others] == [share.seed for share in fresh]
    assert [share.identity() for share in others] == [share.identity() for share in fresh]
    assert left(others, 0)[0].seed == SAMPLERS["shuffle"](True).seed
