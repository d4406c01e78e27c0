from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from tests.unit.training.support import make_trainer


def digest_of(data: Any, labels: Any = (0, 1, 2, 1), epochs: int = 1, **arguments: Any) -> str:
    event = BatchHashEvent()
    dataset = NumpyDataset(np.asarray(data), "x", np.asarray(labels), "y")
    sampler = OrderedSampler(dataset, 2, events=[event], **arguments)
    for _ in range(epochs):
        list(sampler)
        sampler.reset()
    assert (event.batches, event.complete) == (2, True)
    return event.digest


def test_it_is_the_sum_that_the_documentation_describes() -> None:
    event = BatchHashEvent()
    dataset = NumpyDataset(np.array([[1, 2], [3, 4]], np.int16), "x", np.array([0, 1]), "y")
    list(OrderedSampler(dataset, 2, events=[event]))

    text = hashlib.sha256().digest() + b"1:x:int16:(2, 2);" + np.array([1, 2, 3, 4], "<i2").tobytes()
    text += b"1:y:int64:(2,);" + np.array([0, 1], "<i8").tobytes()
    assert event.digest == hashlib.sha256(text).hexdigest()


def test_it_goes_on_from_a_snapshot_in_the_middle_of_the_epoch() -> None:
    dataset = NumpyDataset(np.arange(8).reshape(8, 1), "x", np.arange(8), "y")
    whole, first, second = BatchHashEvent(), BatchHashEvent(), BatchHashEvent()
    list(OrderedSampler(dataset, 2, events=[whole]))
    sampler = OrderedSampler(dataset, 2, events=[first])
    next(sampler)
    sampler.events[:] = [second]
    second.restore(first.state())
    list(sampler)

    assert (second.digest, second.batches, second.complete) == (whole.digest, 4, True)


def test_any_difference_shows() -> None:
    data = np.arange(8.0).reshape(4, 2)
    digests = [
        digest_of(data),
        digest_of(data.astype(np.float32)),
        digest_of(data.reshape(4, 2, 1)),
        digest_of(data[[1, 0, 2, 3]]),
        digest_of(data, labels=[0, 1, 2, 2]),
        digest_of(data, transformations=[lambda batch: batch | {"x": batch["x"] + 1}]),
    ]

    assert len(set(digests)) == len(digests)
    assert digest_of(data) == digests[0]
    assert digest_of(data.astype(">f8")) == digests[0]


def test_first_epoch_only() -> None:
    assert digest_of(np.zeros((4, 1))) == digest_of(np.zeros((4, 1)), epochs=3)


def test_in_a_trainer_it_follows_the_training_sampler() -> None:
    alone = BatchHashEvent()
    event = BatchHashEvent()
    trainer = make_trainer(GradientDescent)
    trainer.run_loop(2, [event], test_before=True)
    list(ShuffleSampler(trainer.train_sampler.dataset, 7, seed=5, events=[alone]))

    assert (event.batches, event.complete) == (4, True)
    assert event.digest == alone.digest


def test_every_run_starts_again() -> None:
    event = BatchHashEvent()
    trainer = make_trainer(GradientDescent)
    trainer.run_loop(1, [event])
    first = event.digest
    trainer.run_loop(1, [event])

    assert event.batches == 4
    assert event.digest != first  # that of the second epoch


def test_epoch_that_was_not_finished_is_not_complete() -> None:
    event = BatchHashEvent()
    sampler = OrderedSampler(NumpyDataset(np.zeros((4, 1)), "x"), 2, events=[event])
    next(sampler)
    sampler.reset()
    list(sampler)

    assert (event.batches, event.complete) == (1, False)
