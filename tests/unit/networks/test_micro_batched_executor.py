from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, InvalidNetworkError, UnknownNameError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.frameworks.reference import from_model
from deep500.networks.batch_separability import LossReduction
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.losses.softmax_cross_entropy_loss import SoftmaxCrossEntropyLoss
from deep500.networks.micro_batched_executor import MicroBatchedExecutor
from deep500.networks.network import Network
from deep500.networks.random_inputs import random_inputs
from deep500.networks.transformation import compare_runs
from deep500.training.optimizers.adam import AdamOptimizer

LOSSES = ["SoftmaxCrossEntropyLoss", "MeanSquaredError", SoftmaxCrossEntropyLoss(ignore_index=3)]


def network(loss: Any = "SoftmaxCrossEntropyLoss", model: str = "lenet", **arguments: Any) -> Network:
    made = create_model(model, shape=(1, 8, 8), **arguments)
    made.append_loss(loss)
    return made


def inputs(made: Network, batch: int = 11) -> dict[str, Any]:
    found = random_inputs(made, {"batch": batch})
    if found["label"].ndim == 1:
        found["label"][:5] = 3
    return found


def in_parts(size: int, factory: Any = from_model, **options: Any) -> Any:
    return lambda made: MicroBatchedExecutor(factory(made), size, **options)


def disagreeing(made: Network, size: int, factory: Any = from_model, kind: type = MicroBatchedExecutor) -> list[str]:
    rows = compare_runs(made, factory, made, lambda m: kind(factory(m), size), inputs(made))
    return [str(row) for row in rows if not row.agrees]


@pytest.mark.parametrize("framework", installed_frameworks())
@pytest.mark.parametrize("loss", LOSSES, ids=["mean", "squares", "ignoring"])
def test_outputs_and_gradients_are_those_of_the_whole_batch(framework: str, loss: Any) -> None:
    assert not disagreeing(network(loss), 4, FRAMEWORKS.get(framework).from_model)


@pytest.mark.parametrize("size", [1, 5, 11, 100])
def test_every_size_of_part_gives_the_same(size: int) -> None:
    assert not disagreeing(network(), size)
    assert not disagreeing(network(model="resnet", depth=8), size)


class Unweighted(MicroBatchedExecutor):
    """Take every part for equally large, a bug."""

    def part_weights(self, reduction: LossReduction, parts: Any, counts: Any) -> list[float]:
        return [1.0 / len(parts)] * len(parts)


class Summed(MicroBatchedExecutor):
    """Take a mean for a sum, a bug."""

    def part_weights(self, reduction: LossReduction, parts: Any, counts: Any) -> list[float]:
        return [1.0] * len(parts)


@pytest.mark.parametrize("kind", [Unweighted, Summed])
@pytest.mark.parametrize("loss", LOSSES, ids=["mean", "squares", "ignoring"])
def test_wrong_weights_are_caught(kind: type, loss: Any) -> None:
    wrong = disagreeing(network(loss), 4, kind=kind)

    assert any("output 'loss'" in text for text in wrong)
    assert any("gradient of" in text for text in wrong)


def test_part_in_which_nothing_counts_adds_nothing() -> None:
    made = network(SoftmaxCrossEntropyLoss(ignore_index=3))
    fed = inputs(made)
    fed["label"][:] = [3, 3, 3, 3, 1, 3, 2, 3, 0, 3, 3]

    rows = compare_runs(made, from_model, made, in_parts(4), fed)

    assert all(row.agrees for row in rows)
    assert np.isfinite([row.error for row in rows]).all()


def test_batch_in_which_nothing_counts_is_as_undefined_as_the_whole() -> None:
    made = network(SoftmaxCrossEntropyLoss(ignore_index=3))
    fed = inputs(made) | {"label": np.full(11, 3)}

    assert np.isnan(from_model(made).inference(fed)["loss"])
    assert np.isnan(in_parts(4)(made).inference_and_backprop(fed)["loss"])


def test_optimizers_train_as_on_the_whole_batch() -> None:
    made = network()
    plain, parts = AdamOptimizer(from_model(made)), AdamOptimizer(in_parts(4)(made))
    fed = inputs(made)

    for _ in range(3):
        expected, found = plain.step(fed)["loss"], parts.step(fed)["loss"]
        assert found == pytest.approx(float(expected), rel=1e-5)

    for name in made.parameters:
        (a,), (b,) = plain.network.fetch_tensors([name]), parts.network.fetch_tensors([name])
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)


def test_parameters_are_fed_and_fetched_through_it() -> None:
    executor = in_parts(4)(network())

    executor.network.feed_tensor("fc3.bias", np.ones(10, np.float32))

    assert executor.inner.network.fetch_tensors(["fc3.bias"])[0].tolist() == [1.0] * 10


def test_events_hear_of_the_whole_batch() -> None:
    heard = []

    class Listener(ExecutorEvent):
        def before_executor(self, fed) -> None:
            heard.append(len(fed["input"]))

        def after_backprop(self, outputs) -> None:
            heard.append(outputs["output"].shape)

    made = network()
    executor = in_parts(4)(made)
    executor.events.append(Listener())
    executor.inference_and_backprop(inputs(made))

    assert heard == [11, (11, 10)]


def test_labels_may_be_left_out() -> None:
    made = network()
    fed = inputs(made)
    del fed["label"]

    assert list(in_parts(4)(made).inference(fed)) == ["output"]


def test_normalisation_over_the_batch_is_refused_in_training() -> None:
    made = network(model="resnet", depth=8)
    executor = in_parts(4)(made)
    executor.network.train()

    with pytest.raises(InvalidNetworkError, match=r"BatchNormalization.*frozen_statistics=True"):
        executor.inference_and_backprop(inputs(made))


def test_frozen_statistics_train_all_but_them() -> None:
    made = network(model="resnet", depth=8)
    optimizer = AdamOptimizer(in_parts(4, frozen_statistics=True)(made))
    before = optimizer.network.fetch_tensors(list(made.states))
    plain = from_model(made)
    plain.inference_and_backprop(inputs(made))

    optimizer.step(inputs(made))

    assert all((a == b).all() for a, b in zip(before, optimizer.network.fetch_tensors(list(made.states))))
    for name, gradient in optimizer.network.gradient():
        scale = 1e-5 * max(1.0, float(np.abs(plain.fetch(f"{name}.grad")).max()))
        np.testing.assert_allclose(optimizer.executor.fetch(gradient), plain.fetch(f"{name}.grad"), atol=scale)


def test_bad_arguments_are_refused() -> None:
    made = network()
    with pytest.raises(InvalidInputError, match="accepted is an executor"):
        MicroBatchedExecutor(made, 4)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="size was given as 0"):
        in_parts(0)(made)
    executor = in_parts(4)(made)
    with pytest.raises(InvalidInputError, match="agree in the number of samples"):
        executor.inference({"input": np.zeros((5, 1, 8, 8), np.float32), "label": np.zeros(4, np.int64)})
    with pytest.raises(InvalidInputError, match="from 1"):
        executor.inference({"input": np.zeros((0, 1, 8, 8), np.float32)})
    with pytest.raises(InvalidInputError, match="accepted is a dictionary"):
        executor.inference([1])  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no output named 'lss'"):
        executor.inference_and_backprop(inputs(made), "lss")
    with pytest.raises(InvalidInputError, match="accepted is float32"):
        executor.inference({"input": np.zeros((5, 1, 8, 8))})
