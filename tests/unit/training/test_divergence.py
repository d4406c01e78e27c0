from __future__ import annotations

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training.divergence import explain_divergence
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer
from tests.unit.training.support import LinearExecutor, clusters, make_trainer


def broken(count: int, sample: int) -> NumpyDataset:
    whole = clusters(count)
    data = np.array(whole.data)
    data[sample, 2] = np.nan
    return NumpyDataset(data, "input", whole.labels, "label", 3, allow_nan=True)


def test_sample_that_is_not_finite_is_named() -> None:
    executor = LinearExecutor()
    sampler = ShuffleSampler(broken(30, 17), 7, seed=1, drop_last_batch=False)
    trainer = Trainer(sampler, None, executor, GradientDescent(executor))
    stats = trainer.run_loop(2, [])
    message = explain_divergence(trainer, stats)

    place = int(np.flatnonzero(sampler.order(0) == 17)[0]) // 7
    assert message is not None
    assert f"the loss is nan in epoch 1, step {place + 1}; the data are to blame: sample 17 of the data set" in message


def test_sample_of_the_test_set_is_named() -> None:
    executor = LinearExecutor()
    samplers = ShuffleSampler(clusters(), 7), OrderedSampler(broken(11, 9), 7)
    trainer = Trainer(*samplers, executor, GradientDescent(executor))
    message = explain_divergence(trainer, trainer.run_loop(1, [], evaluate_every_steps=2))

    assert message is not None
    assert "the test loss is nan after step 2; the data are to blame: sample 9" in message


def test_data_that_are_not_to_blame_are_not_blamed() -> None:
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=1e308))
    with np.errstate(all="ignore"):
        message = explain_divergence(trainer, trainer.run_loop(3, []))

    assert message is not None
    assert "to blame" not in message
    good = make_trainer(GradientDescent)
    assert explain_divergence(good, good.run_loop(1, [])) is None
