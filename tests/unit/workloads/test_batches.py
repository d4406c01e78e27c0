from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import MeasurementError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.networks.creation import create_model
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.workloads._batches import (
    SampledBatches,
    SyntheticBatches,
    hash_batches,
    label_classes,
    random_tensor,
    synthetic_batch,
)


def make_sampler() -> ShuffleSampler:
    data = np.arange(14, dtype=np.float32).reshape(7, 2)
    return ShuffleSampler(NumpyDataset(data, "input", np.arange(7), "label", classes=7), 3, seed=4)


def stream() -> np.random.Generator:
    return random_stream(0, "test")


def same(a: Any, b: Any) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# --- made-up minibatches ----------------------------------------------------------------------------------------------


def test_made_up_minibatches_are_fed_in_turn() -> None:
    batches = SyntheticBatches([{"x": np.array([number])} for number in range(3)])

    fed = [int(batch["x"][0]) for batch in itertools.islice(batches.endless(), 7)]

    assert fed == [0, 1, 2, 0, 1, 2, 0]
    assert batches.first()["x"][0] == 0
    assert next(batches.endless()) is batches.first()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_drawn_tensor_is_what_was_asked_for(name: str, shape: tuple[int, ...]) -> None:
    drawn = random_tensor(TensorDescriptor(name, shape), stream())

    assert isinstance(drawn, np.ndarray)
    assert (drawn.dtype.name, drawn.shape) == (name, shape)
    assert np.array_equal(drawn, random_tensor(TensorDescriptor(name, shape), stream()))


def test_drawn_values_have_the_range_that_was_asked_for() -> None:
    floats, whole = TensorDescriptor("float32", (1000,)), TensorDescriptor("int64", (1000,))

    assert random_tensor(floats, stream()).min() < -1
    positive = random_tensor(floats, stream(), positive=True)
    assert positive.dtype == np.float32
    assert 0.5 <= positive.min() < 0.6
    assert 1.4 < positive.max() < 1.5
    assert set(random_tensor(whole, stream())) == {0, 1}
    assert set(random_tensor(whole, stream(), below=5)) == {0, 1, 2, 3, 4}
    assert set(random_tensor(TensorDescriptor("bool", (100,)), stream(), below=5)) == {False, True}


@pytest.mark.parametrize("name", ["complex64", "float8_e4m3fn"])
def test_dtype_without_a_rule_is_refused(name: str) -> None:
    with pytest.raises(MeasurementError, match="cannot be made up; there are rules for floats"):
        random_tensor(TensorDescriptor(name, (2,)), stream())


def test_tensor_beyond_memory_is_refused() -> None:
    with pytest.raises(MeasurementError, match="do not fit into memory"):
        random_tensor(TensorDescriptor("float32", (2**40, 2**20)), stream())


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


@pytest.mark.parametrize(
    ("op_type", "index", "scores", "classes"),
    [
        ("SoftmaxCrossEntropyLoss", 1, (4, 10), 10),
        ("NegativeLogLikelihoodLoss", 1, ("n", 3, 8), 3),
        ("SoftmaxCrossEntropyLoss", 2, (4, 10), None),
        ("Gather", 1, (4, 10), None),
        ("SoftmaxCrossEntropyLoss", 1, (4, None), None),
        ("SoftmaxCrossEntropyLoss", 1, (4,), None),
        ("SoftmaxCrossEntropyLoss", 1, None, None),
    ],
)
def test_classes_of_labels(op_type: str, index: int, scores: Any, classes: int | None) -> None:
    assert label_classes(op_type, index, scores) == classes


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
