from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.networks.creation import create_model
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.workloads._batches import (
    SampledBatches,
    SyntheticBatches,
    hash_batches,
    synthetic_batch,
)


def make_sampler() -> ShuffleSampler:
    data = np.arange(14, dtype=np.float32).reshape(7, 2)
    return ShuffleSampler(NumpyDataset(data, "input", np.arange(7), "label", classes=7), 3, seed=4)


def same(a: Any, b: Any) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# --- made-up minibatches ----------------------------------------------------------------------------------------------


def test_made_up_minibatches_are_fed_in_turn() -> None:
    batches = SyntheticBatches([{"x": np.array([number])} for number in range(3)])

    fed = [int(batch["x"][0]) for batch in itertools.islice(batches.endless(), 7)]

    assert fed == [0, 1, 2, 0, 1, 2, 0]
    assert batches.first()["x"][0] == 0
    assert next(batches.endless()) is batches.first()


def test_minibatch_fits_the_network_and_differs_from_the_next() -> None:
    network = create_model("mlp", classes=7, shape=(2, 3))
    network.append_loss("SoftmaxCrossEntropyLoss")
    sizes = {"input": (50, 2, 3), "label": (50,)}

    first, again, second = (synthetic_batch(network, sizes, 3, number) for number in (0, 0, 1))

    assert {name: (v.dtype.name, v.shape) for name, v in first.items()} == {
        "input": ("float32", (50, 2, 3)),
        "label": ("int64", (50,)),
    }
    assert set(first["label"]) == set(range(7))
    assert same(first, again)
    assert not same(first, second)
    assert not same(first, synthetic_batch(network, sizes, 4, 0))


# --- minibatches of a sampler -----------------------------------------------------------------------------------------


def test_epochs_follow_one_another() -> None:
    batches = SampledBatches(make_sampler)
    sampler = make_sampler()
    expected = [*sampler]
    sampler.reset()
    expected += [*sampler]

    read = list(itertools.islice(batches.endless(), 4))

    assert len(expected) == 4
    assert all(map(same, read, expected))
    assert not same(read[0], read[2])


def test_looking_at_the_first_minibatch_takes_none_away() -> None:
    batches = SampledBatches(make_sampler)
    endless = batches.endless()

    assert same(batches.first(), next(endless))
    assert not same(batches.first(), next(endless))


# --- hashes -----------------------------------------------------------------------------------------------------------


def test_hashes_are_those_of_the_event() -> None:
    event = BatchHashEvent()
    sampler = make_sampler()
    sampler.events.append(event)
    epoch = list(sampler)

    assert event.complete
    assert SampledBatches(make_sampler).hash == event.digest
    assert hash_batches(epoch) == event.digest
    assert SyntheticBatches(epoch).hash == event.digest
    assert hash_batches(epoch[:1]) != event.digest
    assert hash_batches(epoch[::-1]) != event.digest
