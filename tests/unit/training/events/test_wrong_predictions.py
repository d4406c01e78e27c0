from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.training.events.wrong_predictions import WrongPredictionsEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.trainer import Trainer
from tests.unit.training.support import make_trainer


def images(shape: tuple[int, ...], count: int = 20) -> NumpyDataset:
    random = np.random.default_rng(0)
    labels = np.arange(count) % 3
    return NumpyDataset(random.normal(size=(count, *shape)).astype(np.float32), "input", labels, "label", 3)


def trainer_of(shape: tuple[int, ...] = (1, 5, 5)) -> Trainer:
    network = create_model("mlp", classes=3, shape=shape, hidden=())
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    data = images(shape)
    return Trainer(
        OrderedSampler(data, 8), OrderedSampler(images(shape), 8), executor, GradientDescent(executor, "loss", 0.0)
    )


@pytest.mark.parametrize("shape", [(1, 5, 5), (3, 4, 6), (5, 5)])
def test_the_surest_wrong_ones_are_found(tmp_path: Path, shape: tuple[int, ...]) -> None:
    trainer = trainer_of(shape)
    event = WrongPredictionsEvent(tmp_path / "w.png", 4)
    trainer.run_loop(1, [event])

    data = images(shape)[np.arange(20)]
    trainer.executor.network.eval()
    scores = trainer.executor.to_numpy(trainer.executor.inference({"input": data["input"]})["output"])
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wrong = [n for n in range(20) if scores[n].argmax() != data["label"][n]]
    expected = sorted(wrong, key=lambda n: -shares[n].max())[:4]
    found = sorted(event._worst, reverse=True)
    assert (event.wrong, event.total) == (len(wrong), 20)
    assert [-entry[1] for entry in found] == expected
    assert [entry[0] for entry in found] == pytest.approx([shares[n].max() for n in expected], rel=1e-5)
    np.testing.assert_array_equal(found[0][4], data["input"][expected[0]])
    assert (tmp_path / "w.png").read_bytes().startswith(b"\x89PNG")


def test_titles_say_what_was_predicted_and_what_is_right(tmp_path: Path) -> None:
    event = WrongPredictionsEvent(tmp_path / "w.svg", 2, ["<b>cat</b>", "$x^{$", "a name that is far too long to draw"])
    trainer_of().run_loop(1, [event])

    titles = [axes.get_title() for axes in event._figure().axes if axes.get_title()]
    assert len(titles) == 2
    assert all(" %\nright: " in title for title in titles)
    assert all(len(title) < 60 for title in titles)
    assert "<b>" not in (tmp_path / "w.svg").read_text()


def test_each_test_starts_anew(tmp_path: Path) -> None:
    event = WrongPredictionsEvent(tmp_path / "w.png")
    trainer_of().run_loop(3, [event])

    assert event.total == 20


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    event, other = (WrongPredictionsEvent(tmp_path / "w.png", 3) for _ in range(2))
    trainer_of().run_loop(1, [event])
    other.restore(event.state())

    assert (other.wrong, other.total) == (event.wrong, event.total)
    for one, expected in zip(sorted(other._worst), sorted(event._worst)):
        assert one[:4] == expected[:4]
        np.testing.assert_array_equal(one[4], expected[4])


def test_nothing_wrong_is_a_picture_too(tmp_path: Path) -> None:
    event = WrongPredictionsEvent(tmp_path / "w.png")
    event.total = 5

    assert event._figure().get_suptitle() == "0 of 5 wrong (0.00 %)"


def test_what_has_no_images_is_refused_before_the_training(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"shape \[4\]; accepted are images"):
        make_trainer(GradientDescent).run_loop(1, [WrongPredictionsEvent(tmp_path / "w.png")])
    with pytest.raises(TrainingError, match="no classes are told apart"):
        make_trainer(GradientDescent, tested=False).run_loop(1, [WrongPredictionsEvent(tmp_path / "w.png")])


@pytest.mark.parametrize("arguments", [("w.gif",), ("w.png", 0), ("w.png", 5, "cats"), ("w.png", 5, [1, 2])])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        WrongPredictionsEvent(*arguments)
