from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from deep500.core.errors import TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from deep500.networks.network import Network
from deep500.training.events.nan_guard import NaNGuardEvent
from deep500.training.events.schedule import ScheduleEvent
from deep500.training.input_pipeline import InputPipeline
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import Outcome
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent
from tests.unit.training.support import LinearExecutor, make_trainer


def data(count: int = 40, poisoned: int | None = None) -> NumpyDataset:
    random = np.random.default_rng(0)
    samples = random.normal(size=(count, 4)).astype(np.float32)
    if poisoned is not None:
        samples[poisoned, 2] = np.nan
    return NumpyDataset(samples, "input", np.arange(count) % 3, "label", 3, allow_nan=True)


def trainer_of(network: Network, *, rate: Any = 0.1, poisoned: int | None = None, tested: bool = False) -> Trainer:
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    test = OrderedSampler(data(16, 5 if tested else None), 8) if tested else None
    train = ShuffleSampler(data(poisoned=poisoned), 8, seed=1)
    return Trainer(train, test, executor, MomentumOptimizer(executor, "loss", rate))


def mlp() -> Network:
    return create_model("mlp", classes=3, shape=(4,), hidden=(5,))


def graph(nodes: list[Any], weights: dict[str, Any]) -> Network:
    made = helper.make_graph(
        nodes,
        "odd",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor(n, TensorProto.FLOAT, np.shape(v), np.ravel(v)) for n, v in weights.items()],
    )
    return Network.load(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def parameters(trainer: Trainer) -> dict[str, Any]:
    network = trainer.executor.network
    return dict(zip(network.get_params(), network.fetch_tensors(network.get_params())))


@pytest.mark.parametrize("every", [1, 2, 3, 100])
def test_a_sample_that_is_nan_is_named(every: int) -> None:
    trainer = trainer_of(mlp(), poisoned=17)
    guard = NaNGuardEvent(every)
    stats = trainer.run_loop(3, [guard])

    order = trainer.train_sampler.order(0)
    step = list(order).index(17) // 8
    assert stats.outcome is Outcome.STOPPED
    assert guard.culprit is not None
    assert (guard.culprit.kind, guard.culprit.name) == ("input", "input")
    assert f"of sample 17 of the data set is NaN (1 of 4 elements) in step {step + 1}" in guard.culprit.message


def test_minibatches_that_workers_built_are_built_again() -> None:
    trainer = trainer_of(mlp(), poisoned=17)
    guard = NaNGuardEvent(3)
    with InputPipeline(trainer.train_sampler, workers=2) as pipeline:
        trainer.train_sampler = pipeline
        trainer.run_loop(1, [guard])

    assert guard.culprit is not None
    assert "of sample 17 of the data set" in guard.culprit.message


class Watch(RunnerEvent):
    """Keeps the parameters before each step."""

    def __init__(self) -> None:
        self.before: list[dict[str, Any]] = []

    def before_step(self, step: int, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.before.append(parameters(runner))


@pytest.mark.parametrize("every", [1, 3, 100])
def test_the_node_that_overflows_is_named_and_the_parameters_are_those_before(every: int) -> None:
    trainer = trainer_of(mlp(), rate=1e25)
    guard, watch = NaNGuardEvent(every), Watch()
    trainer.run_loop(3, [guard, watch])

    assert guard.culprit is not None
    assert guard.culprit.kind == "tensor"
    assert guard.culprit.node is not None
    assert "in step 3" in guard.culprit.message or "in step 2" in guard.culprit.message
    assert "from what is finite" in guard.culprit.message
    step = int(guard.culprit.message.partition("in step ")[2].partition(",")[0])
    for name, value in parameters(trainer).items():
        np.testing.assert_array_equal(value, watch.before[step - 1][name])


def test_a_gradient_that_is_not_finite_is_named_where_the_loss_is() -> None:
    nodes = [
        helper.make_node("Sqrt", ["w"], ["root"]),  # of 0: its slope is infinite
        helper.make_node("MatMul", ["input", "root"], ["output"]),
    ]
    trainer = trainer_of(graph(nodes, {"w": np.zeros((4, 3))}))
    guard = NaNGuardEvent()
    trainer.run_loop(1, [guard])

    assert guard.culprit is not None
    assert (guard.culprit.kind, guard.culprit.name) == ("gradient", "w")
    assert "in step 1, and the loss is finite" in guard.culprit.message
    assert np.isfinite(parameters(trainer)["w"]).all()


def test_an_update_that_overflows_is_named() -> None:
    trainer = trainer_of(mlp(), rate=0.0)
    rates = ScheduleEvent("learning_rate", lambda step: 3e38 if step == 2 else 0.0)
    # Together with a velocity, one float32 is too small for a step of this size.
    guard = NaNGuardEvent()
    trainer.optimizer.momentum = 1e5  # type: ignore[attr-defined]
    trainer.run_loop(1, [guard, rates])

    assert guard.culprit is not None
    assert guard.culprit.kind in ("parameter", "tensor", "gradient")
    assert "in step 3" in guard.culprit.message or "in step 4" in guard.culprit.message


def test_a_parameter_that_never_was_finite_is_named() -> None:
    trainer = trainer_of(mlp())
    name = trainer.executor.network.get_params()[1]
    value = trainer.executor.network.fetch_tensors([name])[0]
    trainer.executor.network.feed_tensor(name, np.full_like(value, np.inf))
    guard = NaNGuardEvent()
    trainer.run_loop(1, [guard])

    assert guard.culprit is not None
    assert guard.culprit.message == f"the parameter {name!r} is not finite before step 1"


def test_a_test_is_looked_at_too() -> None:
    trainer = trainer_of(mlp(), tested=True)
    guard = NaNGuardEvent()
    stats = trainer.run_loop(3, [guard])

    assert stats.outcome is Outcome.STOPPED
    assert guard.culprit is not None
    assert "'input' of sample 5 of the data set is NaN (1 of 4 elements) in minibatch 1 of a test" in (
        guard.culprit.message
    )


def test_without_copies_the_step_is_named() -> None:
    trainer = trainer_of(mlp(), poisoned=17)
    guard = NaNGuardEvent(3, locate=False)
    trainer.run_loop(3, [guard])

    assert guard.culprit is not None
    assert guard.culprit.kind == "loss"
    assert "the loss is nan in step" in guard.culprit.message


class Noise(ExecutorEvent):
    """Counts what the executor runs."""

    runs = 0

    def after_backprop(self, outputs: Any) -> None:
        self.runs += 1

    def after_inference(self, outputs: Any) -> None:
        self.runs += 1


def test_listeners_are_told_of_nothing_that_is_run_again() -> None:
    trainer = trainer_of(mlp(), poisoned=17)
    noise = Noise()
    stats = trainer.run_loop(3, [NaNGuardEvent(), noise])

    assert noise.runs == stats.steps
    assert trainer.executor.events == []
    assert trainer.executor.network.mode == "train"


def test_where_nothing_can_be_run_again_the_step_is_named() -> None:
    trainer = trainer_of(mlp(), poisoned=17)
    trainer.train_sampler.batch_at = None  # type: ignore[assignment, method-assign]

    def taken(position: int) -> Any:
        return type(trainer.train_sampler).batch_at(trainer.train_sampler, position)

    trainer.train_sampler._take = taken  # type: ignore[method-assign]
    guard = NaNGuardEvent()
    trainer.run_loop(1, [guard])

    assert guard.culprit is not None
    assert "the loss is nan in step" in guard.culprit.message


def test_a_finite_training_goes_on_with_the_same_bits() -> None:
    with_guard, without = trainer_of(mlp()), trainer_of(mlp())
    guard = NaNGuardEvent(3)
    assert with_guard.run_loop(3, [guard]).outcome is Outcome.COMPLETED
    without.run_loop(3, [])

    assert guard.culprit is None
    for name, value in parameters(with_guard).items():
        np.testing.assert_array_equal(value, parameters(without)[name])


def test_losses_are_read_in_blocks() -> None:
    executor = LinearExecutor()
    trainer = make_trainer(GradientDescent, executor=executor, batch_size=1, tested=False)
    reads: list[int] = []

    class Reads(RunnerEvent):
        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            reads.append(executor.scalars_read)

    trainer.run_loop(1, [NaNGuardEvent(10), Reads()])
    assert reads[:9] == [0] * 9
    assert reads[9:19] == [10] * 10


@pytest.mark.parametrize("arguments", [(0,), (1.5,), (10, "yes")])
def test_arguments_are_checked(arguments: Any) -> None:
    with pytest.raises(TrainingError, match="accepted are"):
        NaNGuardEvent(*arguments)


@pytest.mark.parametrize("every", [2, 100])
def test_what_the_loss_does_not_show_is_found_too(every: int) -> None:
    """The network takes NaN for 0, so that the loss stays finite while the parameters do not."""
    nodes = [
        helper.make_node("MatMul", ["input", "w"], ["product"]),
        helper.make_node("IsNaN", ["product"], ["is_nan"]),
        helper.make_node("Constant", [], ["zero"], value=helper.make_tensor("z", TensorProto.FLOAT, [], [0.0])),
        helper.make_node("Where", ["is_nan", "zero", "product"], ["output"]),
    ]
    weights = np.random.default_rng(0).normal(size=(4, 3))
    trainer = trainer_of(graph(nodes, {"w": weights}), poisoned=17)
    guard = NaNGuardEvent(every)
    stats = trainer.run_loop(3, [guard])

    record = stats.epochs[0].training
    assert record is not None
    assert np.isfinite(record.step_losses).all()
    assert guard.culprit is not None
    assert (guard.culprit.kind, guard.culprit.name) == ("input", "input")
    assert "of sample 17" in guard.culprit.message


def test_a_parameter_that_somebody_else_spoilt_is_named() -> None:
    class Spoil(RunnerEvent):
        def after_training_set(self, runner: Any, training_stats: Any) -> None:
            name = runner.executor.network.get_params()[0]
            value = runner.executor.network.fetch_tensors([name])[0]
            runner.executor.network.feed_tensor(name, np.full_like(value, np.nan))

    trainer = trainer_of(mlp())
    guard = NaNGuardEvent()
    trainer.run_loop(2, [Spoil(), guard])

    name = trainer.executor.network.get_params()[0]
    assert guard.culprit is not None
    assert guard.culprit.message == f"the parameter {name!r} is NaN (20 of 20 elements) after step 5"
