from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, InvalidInputError, TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.measure.regions import collect_regions, region
from deep500.networks.executor_event import ExecutorEvent
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.choice import ChoiceSampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import Outcome
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining
from tests.unit.training.support import LinearExecutor, clusters, make_trainer

RUNNER_HOOKS = [name for name in vars(RunnerEvent) if name.startswith(("before_", "after_"))]
STEP_HOOKS = ["before_optimizer_step", "after_optimizer_step"]
SAMPLER_HOOKS = ["before_sampling", "after_sampling", "on_sampler_reset"]
EXECUTOR_HOOKS = ["before_executor", "after_inference", "after_backprop"]
ALL_HOOKS = [*RUNNER_HOOKS, *STEP_HOOKS, *SAMPLER_HOOKS, *EXECUTOR_HOOKS]


class Listener(RunnerEvent, OptimizerEvent, SamplerEvent, ExecutorEvent):
    """Notes every hook; raises at one of them."""

    def __init__(self, hook: str = "", error: BaseException | None = None) -> None:
        self.calls: list[str] = []
        self.hook, self.error = hook, error

    def note(self, hook: str) -> None:
        self.calls.append(hook)
        if hook == self.hook and self.error is not None:
            raise self.error


for _hook in ALL_HOOKS:
    setattr(Listener, _hook, lambda self, *arguments, _hook=_hook: self.note(_hook))


def train(epochs: int = 2, *events: Any, **arguments: Any) -> Trainer:
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=0.5), **arguments)
    trainer.run_loop(epochs, events)
    return trainer


def losses(trainer: Trainer) -> list[float | None]:
    assert trainer.statistics is not None
    return [record.training.loss for record in trainer.statistics.epochs if record.training]


def test_it_trains_and_tests_every_epoch() -> None:
    trainer = make_trainer(lambda executor: GradientDescent(executor, learning_rate=0.5))
    stats = trainer.run_loop(3, [], test_before=True)

    assert stats is trainer.statistics
    assert (stats.outcome, stats.complete, stats.epochs_planned) == (Outcome.COMPLETED, True, 3)
    assert [record.epoch for record in stats.epochs] == [0, 1, 2]
    for record in stats.epochs:
        assert record.training is not None
        assert record.test is not None
        assert (record.training.batches, record.training.samples) == (4, 28)
        assert (record.test.batches, record.test.samples) == (2, 11)
        assert record.training.accuracy_percent is None
    assert stats.initial_test is not None
    assert stats.initial_test.samples == 11
    assert stats.test_accuracy == 100.0
    assert stats.epochs[-1].test is not None
    assert stats.initial_test.loss is not None
    assert stats.epochs[-1].test.loss is not None
    assert stats.epochs[-1].test.loss < 0.3 * stats.initial_test.loss


def test_statistics_are_those_of_the_steps() -> None:
    executor = LinearExecutor()
    twin = LinearExecutor()
    twin_optimizer = GradientDescent(twin, learning_rate=0.5)
    trainer = make_trainer(lambda e: GradientDescent(e, learning_rate=0.5), executor=executor)
    stats = trainer.run_loop(1, [TrainingAccuracy()])

    expected, right = [], 0
    for batch in ShuffleSampler(clusters(), 7, seed=5):
        outputs = twin_optimizer.step(batch)
        expected.append(float(outputs["loss"]))
        right += int((outputs["output"].argmax(axis=1) == batch["label"]).sum())
    training = stats.epochs[0].training
    assert training is not None
    assert training.step_losses == expected
    assert training.loss == pytest.approx(np.mean(expected), rel=1e-12)
    assert training.accuracy_percent == pytest.approx(100 * right / 28)
    test = stats.epochs[0].test
    assert test is not None
    scores = twin.inference(clusters(11, seed=1)[:])
    assert test.loss == pytest.approx(float(scores["loss"]), rel=1e-12)
    assert executor.network.weights_hash() == twin.network.weights_hash()


def test_mode_is_that_of_each_pass_and_comes_back() -> None:
    for mode in ("train", "eval"):
        executor = LinearExecutor()
        trainer = make_trainer(GradientDescent, executor=executor)
        getattr(executor.network, mode)()
        trainer.run_loop(1, [])

        assert executor.modes == ["train"] * 4 + ["eval"] * 2
        assert executor.network.mode == mode


def test_losses_are_read_once_an_epoch() -> None:
    executor = LinearExecutor()
    reads: list[int] = []

    class Reads(OptimizerEvent):
        def after_optimizer_step(self, executor: Any, outputs: Any, loss: Any) -> None:
            reads.append(executor.scalars_read)

    make_trainer(GradientDescent, executor=executor).run_loop(2, [Reads()])

    assert reads == [0, 0, 0, 0, 6, 6, 6, 6]


def test_hooks_are_called_in_order() -> None:
    listener = Listener()
    train(1, listener, batch_size=15)

    assert [call for call in listener.calls if call in RUNNER_HOOKS] == [
        "before_training",
        "before_epoch",
        "before_training_set",
        *["before_step", "after_step"] * 2,
        "after_training_set",
        "before_test_set",
        "before_test_batch",
        "after_test_batch",
        "after_test_set",
        "after_epoch",
        "after_training",
    ]
    step = ["before_sampling", "after_sampling", "before_step", "before_optimizer_step", "before_executor"]
    step += ["after_backprop", "after_optimizer_step", "after_step"]
    begin = listener.calls.index("before_training_set") + 1
    assert listener.calls[begin : begin + 8] == step


def test_samplers_start_at_their_first_epoch_and_go_on() -> None:
    trainer = train(2)
    assert trainer.train_sampler.epoch == 1
    trainer.run_loop(1, [])
    assert trainer.train_sampler.epoch == 2

    together = train(3)
    assert together.executor.network.weights_hash() == trainer.executor.network.weights_hash()


@pytest.mark.parametrize("own", [0, 2])
@pytest.mark.parametrize("hook", ["", *ALL_HOOKS])
@pytest.mark.parametrize("error", [StopTraining, KeyboardInterrupt, ZeroDivisionError])
def test_events_may_end_the_run_at_any_hook_and_leave_nothing_behind(
    own: int, hook: str, error: type[BaseException]
) -> None:
    trainer = make_trainer(GradientDescent)
    lists = [trainer.executor.events, trainer.train_sampler.events]
    assert trainer.validation_sampler is not None
    lists.append(trainer.validation_sampler.events)
    mine: list[Any] = [Listener() for _ in range(own)]
    for events in lists:
        events.extend(mine)
    listener = Listener(hook, error())

    if hook and error is not StopTraining:
        with pytest.raises(error):
            trainer.run_loop(2, [listener])
    else:
        trainer.run_loop(2, [listener])

    for events in lists:
        assert [id(event) for event in events] == [id(event) for event in mine]
    stats = trainer.statistics
    assert stats is not None
    if hook in ("", "after_training"):
        assert stats.outcome is Outcome.COMPLETED
    else:
        outcomes = {StopTraining: "stopped", KeyboardInterrupt: "interrupted", ZeroDivisionError: "failed"}
        assert stats.outcome == outcomes[error]
        assert stats.complete is (error is StopTraining)
    assert listener.calls.count("after_training") == 1
    assert trainer.executor.network.mode == "train"


def test_interrupted_epoch_is_kept_and_marked() -> None:
    trainer = make_trainer(GradientDescent)

    class Impatient(OptimizerEvent):
        steps = 0

        def after_optimizer_step(self, executor: Any, outputs: Any, loss: Any) -> None:
            self.steps += 1
            if self.steps == 6:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.run_loop(3, [Impatient()])

    stats = trainer.statistics
    assert stats is not None
    assert not stats.complete
    first, second = stats.epochs
    assert first.training is not None
    assert first.training.complete
    assert first.test is not None
    assert second.training is not None
    assert (second.training.batches, second.training.complete, second.test) == (2, False, None)
    assert len(second.training.step_losses) == 2


def test_interrupted_test_does_not_count_as_the_test_accuracy() -> None:
    class Impatient(RunnerEvent):
        def after_test_batch(self, runner: Any, training_stats: Any, outputs: Any) -> None:
            raise StopTraining

    trainer = train(1, Impatient())
    assert trainer.statistics is not None
    assert trainer.statistics.epochs[0].test is not None
    assert trainer.statistics.epochs[0].test.samples == 7
    assert trainer.statistics.test_accuracy is None


def test_accuracy_is_counted_over_samples_and_nan_is_wrong() -> None:
    trainer = train(1)
    executor = trainer.executor
    assert isinstance(executor, LinearExecutor)
    executor.tensors[executor.bias] = np.full(3, np.nan)
    stats = Trainer(
        ShuffleSampler(clusters(), 7), trainer.validation_sampler, executor, GradientDescent(executor)
    ).run_loop(0, [], test_before=True)

    assert stats.test_accuracy == 0.0
    assert stats.initial_test is not None
    assert stats.initial_test.loss is not None
    assert math.isnan(stats.initial_test.loss)


def test_without_test_set() -> None:
    trainer = train(1, tested=False)

    assert trainer.statistics is not None
    assert trainer.statistics.epochs[0].test is None
    assert trainer.statistics.test_batch_size is None
    assert trainer.run_loop(0, [], test_before=True).initial_test is None


def test_each_pass_is_a_region() -> None:
    with collect_regions() as breakdown:
        make_trainer(GradientDescent).run_loop(3, [], test_before=True)
        make_trainer(GradientDescent, tested=False).run_loop(2, [])

    assert [(row.path, row.calls) for row in breakdown.rows()] == [(("test set",), 4), (("training set",), 5)]


def test_pass_that_is_interrupted_is_left() -> None:
    class Interrupting(OptimizerEvent):
        def after_optimizer_step(self, executor: Any, outputs: Any, loss: Any) -> None:
            raise KeyboardInterrupt

    with collect_regions() as breakdown:
        with pytest.raises(KeyboardInterrupt):
            make_trainer(GradientDescent).run_loop(1, [Interrupting()])
        with region("after"):
            pass

    assert [(row.path, row.calls) for row in breakdown.rows()] == [(("training set",), 1), (("after",), 1)]


def test_data_without_classes_have_no_accuracy() -> None:
    trainer = train(0)
    assert trainer.validation_sampler is not None
    trainer.validation_sampler.dataset._classes = None

    stats = trainer.run_loop(1, [])
    assert stats.test_accuracy is None
    assert stats.epochs[0].test is not None
    assert stats.epochs[0].test.loss is not None


def test_default_events_draw_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(GradientDescent).run_loop(1)

    assert capsys.readouterr() == ("", "")


def test_optimizer_that_returns_no_loss_is_named() -> None:
    class Silent(GradientDescent):
        def step(self, inputs: Any) -> Any:
            super().step(inputs)

    class Lossless(GradientDescent):
        def step(self, inputs: Any) -> Any:
            return {"output": super().step(inputs)["output"]}

    for kind, received in ((Silent, "NoneType"), (Lossless, "returned output")):
        trainer = make_trainer(kind)
        with pytest.raises(TrainingError, match=f"{kind.__name__}.step must return.*{received}"):
            trainer.run_loop(1, [])
        assert trainer.statistics is not None
        assert trainer.statistics.outcome is Outcome.FAILED


def make_arguments() -> dict[str, Any]:
    executor = LinearExecutor()
    return {
        "train_sampler": ShuffleSampler(clusters(), 7),
        "validation_sampler": OrderedSampler(clusters(11), 7),
        "executor": executor,
        "optimizer": GradientDescent(executor),
    }


SHARED = OrderedSampler(clusters(), 5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"train_sampler": clusters()}, "train_sampler was given as NumpyDataset.*ShuffleSampler"),
        ({"train_sampler": None}, "train_sampler was given as NoneType"),
        ({"validation_sampler": clusters()}, "validation_sampler was given as NumpyDataset"),
        ({"validation_sampler": OrderedSampler(clusters(11), 7, True)}, "leaves out 4 of the 11 samples"),
        ({"validation_sampler": ChoiceSampler(clusters(), 5, replacement=True, drop_last_batch=False)}, "exactly once"),
        ({"test_sampler": ChoiceSampler(clusters(), 5, replacement=True, drop_last_batch=False)}, "exactly once"),
        ({"train_sampler": SHARED, "validation_sampler": SHARED}, "the same sampler"),
        ({"executor": "pytorch"}, "executor was given as str"),
        ({"optimizer": GradientDescent}, "optimizer was given as"),
        ({"optimizer": GradientDescent(LinearExecutor())}, "another executor"),
        ({"network_output": "outptu"}, "Did you mean 'output'"),
        ({"network_output": 3}, "no output 3"),
    ],
)
def test_arguments_that_are_not_accepted(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        Trainer(**(make_arguments() | wrong))


@pytest.mark.parametrize("epochs", [-1, 1.0, "1", True])
def test_epochs_that_are_not_accepted(epochs: Any) -> None:
    with pytest.raises(TrainingError, match="epochs was given as"):
        Trainer(**make_arguments()).run_loop(epochs)


def test_reruns_are_equal() -> None:
    assert losses(train(2)) == losses(train(2))


def test_labels_that_the_scores_do_not_have_are_said() -> None:
    arguments = make_arguments()
    labels = np.array([0, 1, 2, 5])
    arguments["validation_sampler"] = OrderedSampler(NumpyDataset(np.zeros((4, 4)), "input", labels, "label"), 4)
    trainer = Trainer(**arguments)
    executor = trainer.executor
    assert isinstance(executor, LinearExecutor)
    executor._run = lambda program, inputs: {"output": np.zeros((len(inputs[0]), 3))}  # type: ignore[method-assign]

    with pytest.raises(TrainingError, match="A label is 5; with 3 scores"):
        trainer.run_loop(0, [], test_before=True)


class Failing(RunnerEvent):
    def after_training(self, runner: Any, training_stats: Any) -> None:
        raise ValueError("in the end")


def test_every_event_is_told_of_the_end_also_when_one_raises() -> None:
    last = Listener()
    with pytest.raises(ValueError, match="in the end"):
        make_trainer(GradientDescent).run_loop(1, [Failing(), last])

    assert "after_training" in last.calls


@pytest.mark.parametrize("batch_size", [1, 7])
def test_one_sample_is_enough(batch_size: int) -> None:
    executor = LinearExecutor()
    one = clusters(1)
    samplers = OrderedSampler(one, batch_size), OrderedSampler(one, batch_size)
    trainer = Trainer(*samplers, executor, GradientDescent(executor))
    record = trainer.run_loop(3, []).epochs[-1]

    assert record.training is not None
    assert (record.training.batches, record.training.samples) == (1, 1)
    assert record.test is not None
    assert record.test.accuracy_percent == 100.0


def test_number_of_epochs_may_be_huge() -> None:
    class Stopping(RunnerEvent):
        def after_epoch(self, epoch: int, runner: Any, training_stats: Any) -> None:
            raise StopTraining

    statistics = make_trainer(GradientDescent).run_loop(2**70, [Stopping()])

    assert (len(statistics.epochs), statistics.outcome) == (1, Outcome.STOPPED)


def test_labels_of_another_dtype_are_refused_before_the_first_step() -> None:
    class Narrow(NumpyDataset):
        def __getitem__(self, index: Any) -> dict[str, Any]:
            return {**super().__getitem__(index), "label": super().__getitem__(index)["label"].astype(np.int32)}

    executor = LinearExecutor()
    before = {name: value.copy() for name, value in executor.tensors.items()}
    data = clusters()
    narrow = Narrow(data.data, "input", data.labels, "label")
    trainer = Trainer(ShuffleSampler(narrow, 7), None, executor, GradientDescent(executor))

    with pytest.raises(InvalidInputError, match=r"'label' was given as int32.*accepted is int64"):
        trainer.run_loop(1, [])
    assert all(np.array_equal(before[name], executor.tensors[name]) for name in before)


def test_snapshot_that_was_edited_is_one_error_and_changes_nothing() -> None:
    trainer = make_trainer(GradientDescent)
    trainer.run_loop(1, [])
    state = trainer.state()
    before = {name: value.copy() for name, value in trainer.executor.tensors.items()}
    for part in ("executor", "optimizer", "train_sampler", "validation_sampler", "statistics"):
        for wrong in (None, 3, "x", [], {}):
            with pytest.raises(CheckpointError):
                trainer.restore({**state, part: wrong})
    for name, value in before.items():
        np.testing.assert_array_equal(trainer.executor.tensors[name], value)
