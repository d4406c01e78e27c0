from __future__ import annotations

import math

import pytest

from deep500.core.errors import TrainingError
from deep500.datasets.text_dataset import TextDataset
from deep500.measure.metric import Direction
from deep500.training.metrics.bits_per_byte import BitsPerByte
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.statistics import EpochRecord, PassRecord, TrainingStatistics
from deep500.training.trainer import Trainer
from tests.unit.training.support import make_trainer


def trainer_on(text: str) -> Trainer:
    trainer = make_trainer(GradientDescent)
    trainer.validation_sampler = OrderedSampler(TextDataset.from_text(text, 2), 2)
    return trainer


def with_loss(loss: float) -> TrainingStatistics:
    return TrainingStatistics(1, 2, 2, epochs=[EpochRecord(0, test=PassRecord(1, 2, 0.1, loss))])


def test_it_is_the_cross_entropy_in_bits_a_byte() -> None:
    metric = BitsPerByte()

    assert metric.measure(trainer_on("abab"), with_loss(math.log(2))) == pytest.approx(1.0)
    # Each character takes two bytes.
    assert metric.measure(trainer_on("äöäö"), with_loss(math.log(2))) == pytest.approx(0.5)
    assert (metric.unit, metric.direction, metric.requires_inputs) == ("bit", Direction.LOWER, True)


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(TrainingError, match="received None"):
        BitsPerByte().measure(None, with_loss(1.0))
    with pytest.raises(TrainingError, match="it is a NumpyDataset"):
        BitsPerByte().measure(make_trainer(GradientDescent), with_loss(1.0))
    with pytest.raises(TrainingError, match="there is none"):
        BitsPerByte().measure(make_trainer(GradientDescent, tested=False), with_loss(1.0))
    with pytest.raises(TrainingError, match="no test was completed"):
        BitsPerByte().measure(trainer_on("abab"), TrainingStatistics(1, 2))
