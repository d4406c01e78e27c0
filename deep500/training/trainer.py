"""What brings together all that a training needs: it trains, tests, and can go on from a snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError, near_miss
from deep500.core.event import Event
from deep500.core.stateful import State, Stateful, checkpoint_errors
from deep500.networks.graph_executor import GraphExecutor
from deep500.training._training_run import TrainingRun
from deep500.training.budget import Budget
from deep500.training.listeners import Listeners, attached
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler
from deep500.training.statistics import TrainingStatistics

__all__ = ["Trainer", "default_trainer_events"]


def default_trainer_events(epochs: int) -> list[Event]:
    """Return the events of a training that was given none: a progress bar, silent unless stderr is a terminal."""
    from deep500.training.events.progress_bar import TerminalBarEvent

    return [TerminalBarEvent(epochs)]


class Trainer:
    """Trains a network epoch by epoch, and tests it after each.

    Attributes:
        train_sampler: Serves the training set.
        validation_sampler: Serves the set that is tested on after each epoch; ``None`` when there is none.
        test_sampler: Serves a third set, tested on once in the end; ``None`` when there is none.
        executor: What runs the network.
        optimizer: What updates its parameters.
        network_output: Name of the class scores among the network's outputs; ``None`` when it has several outputs and
            none was named, and then no accuracy is counted.
        statistics: What the last (or current) run measured; ``None`` before the first one. It stays when a run is
            interrupted.
    """

    def __init__(
        self,
        train_sampler: Sampler,
        validation_sampler: Sampler | None,
        executor: GraphExecutor,
        optimizer: Optimizer,
        network_output: str | None = None,
        *,
        test_sampler: Sampler | None = None,
    ) -> None:
        """Bring together what a training needs.

        Args:
            train_sampler: Serves the training set.
            validation_sampler: Serves the set to test on, all of it; ``None`` not to test.
            executor: What runs the network.
            optimizer: What updates its parameters, made for this executor.
            network_output: Name of the output that holds the class scores; by default the only output.
            test_sampler: Serves a third set, all of it, that nothing is decided by: it is tested on once in the end.

        Raises:
            TrainingError: An argument is not what it should be, the optimizer was made for another executor, a sampler
                to test on does not serve each sample exactly once, or the network has no such output.
        """
        _check_kind("train_sampler", train_sampler, Sampler, "ShuffleSampler(dataset, batch_size)")
        tests = {"validation_sampler": validation_sampler, "test_sampler": test_sampler}
        for name, sampler in tests.items():
            if sampler is not None:
                _check_kind(name, sampler, Sampler, "OrderedSampler(dataset, batch_size)")
                _check_covers(name, sampler)
        _check_different({"train_sampler": train_sampler, **tests})
        _check_kind("executor", executor, GraphExecutor, "deep500.frameworks.<framework>.from_model(network)")
        _check_kind("optimizer", optimizer, Optimizer, "GradientDescent(executor)")
        if optimizer.executor is not executor:
            raise TrainingError("The optimizer was made for another executor. Make it with the trainer's executor.")
        outputs = list(executor.network.outputs)
        if network_output is not None and network_output not in outputs:
            hint = near_miss(str(network_output), outputs)
            raise TrainingError(
                f"The network has no output {network_output!r}.{hint} Its outputs: {', '.join(outputs)}."
            )
        self.train_sampler = train_sampler
        self.validation_sampler = validation_sampler
        self.test_sampler = test_sampler
        self.executor = executor
        self.optimizer = optimizer
        self.network_output = outputs[0] if network_output is None and len(outputs) == 1 else network_output
        self.statistics: TrainingStatistics | None = None
        self._run: TrainingRun | None = None
        self._snapshot: Mapping[str, Any] | None = None  # what a run that is begun now goes on from

    def run_loop(
        self,
        epochs: int | None = None,
        events: Iterable[Event] | None = None,
        *,
        steps: int | None = None,
        samples: int | None = None,
        time_limit_s: float | None = None,
        evaluate_every_steps: int | None = None,
        test_before: bool = False,
    ) -> TrainingStatistics:
        """Train until the budget is used up, and test after each epoch.

        Each pass is a region, ``"training set"`` or ``"test set"`` (:mod:`deep500.measure.regions`).

        The samplers continue where they are: a first run starts at their epoch 0, a second run at the epoch after the
        last one. The network is in training mode while it trains and in evaluation mode while it is tested; in the
        end it has the mode that it had before.

        After :meth:`restore`, a call with the same arguments goes on where the snapshot was taken; with a larger
        budget, it goes on further. What is returned covers the whole training then.

        Several ranks (``optimizer.ranks``) call it together, with training samplers that give all of them equally many
        minibatches of equal size. The budget, and what is returned, are those of all ranks together: a step's loss is
        the mean over ranks. Each minibatch of a test is run by one of them, or all by rank 0 where replicas differ.
        What rank 0's clock and events decide holds on all ranks.

        Args:
            epochs: Number of epochs. Exactly one of the four budgets is given.
            events: Listeners of any kind, attached to executor and samplers for this run only; by default a progress
                bar, silent unless stderr is a terminal. An event may raise ``StopTraining`` at any hook.
            steps: Number of steps. The last epoch may end early, with its test.
            samples: Number of samples; the step that reaches it is the last one.
            time_limit_s: Seconds of training, by the host's clock and without tests; the step in which they are over
                is the last one.
            evaluate_every_steps: Test each time that so many steps were done, too. The clock of the training stands
                still meanwhile.
            test_before: Whether to test once before training too.

        Returns:
            What was measured. After a ``KeyboardInterrupt`` or another exception, which is raised on, it is in
            :attr:`statistics`, where ``complete`` is false.

        Raises:
            TrainingError: An argument is not accepted, or the optimizer returns no loss.
            CheckpointError: The snapshot to go on from does not fit the events.
        """
        budget = Budget.of(epochs, steps, samples, time_limit_s)
        if evaluate_every_steps is not None:
            check_count("evaluate_every_steps", evaluate_every_steps, least=1, error=TrainingError)
        planned = budget.epochs_planned(self.train_sampler, self.optimizer.ranks.size)
        listeners = Listeners(default_trainer_events(-1 if planned is None else planned) if events is None else events)
        snapshot, self._snapshot = self._snapshot, None
        stats = self.statistics = self._statistics(budget, snapshot)
        run = self._run = TrainingRun(self, stats, listeners, budget, evaluate_every_steps, snapshot)
        with self._listened_to(listeners):
            run.run(test_before=test_before)
        return stats

    @contextlib.contextmanager
    def _listened_to(self, listeners: Listeners) -> Iterator[None]:
        """Attach events to executor and samplers for a run; afterwards the network has the mode that it had."""
        network = self.executor.network
        mode_before = network.mode
        samplers = [s for s in (self.train_sampler, self.validation_sampler, self.test_sampler) if s is not None]
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: network.train() if mode_before == "train" else network.eval())
            stack.enter_context(attached(self.executor.events, listeners.executor))
            for sampler in samplers:
                stack.enter_context(attached(sampler.events, listeners.sampler))
            yield

    def state(self) -> State:
        """Return a snapshot of all that the rest of the training depends on.

        It may be taken between runs and, by an event, at the hooks ``after_step``, ``after_test_set`` and those
        outside of tests and steps. The statistics are part of it.

        Raises:
            CheckpointError: A part cannot tell what its course depends on, or it is within a step or a test.
        """
        if self.statistics is None:
            raise CheckpointError("There is nothing to keep yet: the training has not begun.")
        running = self._run.state() if self._run is not None else {}
        parts = {name: _stateful(name, part).state() for name, part in self._parts().items()}
        return {**parts, "statistics": self.statistics.state(), **running}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot with the next :meth:`run_loop`.

        Raises:
            CheckpointError: It is of another training; nothing is changed then.
        """
        parts = self._parts()
        lacking = [name for name in ("statistics", *parts) if name not in state]
        if lacking:
            raise CheckpointError(f"The checkpoint holds no {', '.join(lacking)}, so that this training cannot go on.")
        with checkpoint_errors("the statistics of a training"):
            stats = TrainingStatistics.from_state(state["statistics"])
        before: list[tuple[Stateful, State]] = []
        try:
            for name, part in parts.items():
                stateful = _stateful(name, part)
                before.append((stateful, stateful.state()))
                with checkpoint_errors(f"the {name.replace('_', ' ')}"):
                    stateful.restore(state[name])
        except BaseException:
            for stateful, old in before:
                stateful.restore(old)
            raise
        self.statistics, self._snapshot, self._run = stats, dict(state), None

    def why_no_accuracy(self, sampler: Sampler | None) -> str | None:
        """Return why accuracy cannot be counted on what a sampler serves; ``None`` when it can."""
        if sampler is None:
            return "there is no validation sampler"
        if sampler.dataset.label_node is None or sampler.dataset.classes is None:
            return "the data set does not say that its labels are class numbers (classes)"
        if self.network_output is None:
            return f"network_output does not name one of the outputs ({', '.join(self.executor.network.outputs)})"
        return None

    def _parts(self) -> dict[str, Any]:
        """Return what has a state of its own, by its name in a snapshot."""
        parts = {
            "executor": self.executor,
            "optimizer": self.optimizer,
            "train_sampler": self.train_sampler,
            "validation_sampler": self.validation_sampler,
            "test_sampler": self.test_sampler,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _statistics(self, budget: Budget, snapshot: Mapping[str, Any] | None) -> TrainingStatistics:
        """Return the statistics that a run fills: new ones, or those that were restored."""
        ranks = self.optimizer.ranks.size
        planned = budget.epochs_planned(self.train_sampler, ranks), budget.steps_planned(self.train_sampler, ranks)
        stats = self.statistics
        if snapshot is None or stats is None:
            test_batch_size = self.validation_sampler.batch_size if self.validation_sampler else None
            stats = TrainingStatistics(planned[0], self.train_sampler.batch_size * ranks, test_batch_size)
        stats.epochs_planned, stats.steps_planned = planned
        stats.budget = {budget.kind: budget.amount}
        return stats


def _stateful(name: str, part: Any) -> Stateful:
    if isinstance(part, Stateful):
        return part
    raise CheckpointError(
        f"The {name.replace('_', ' ')} {type(part).__name__} cannot be kept in a checkpoint: it has no state() and "
        f"restore(state)."
    )


def _check_kind(argument: str, value: Any, kind: type, example: str) -> None:
    if not isinstance(value, kind):
        raise TrainingError(
            f"{argument} was given as {type(value).__name__}; accepted is a {kind.__name__}, such as {example}."
        )


def _check_covers(argument: str, sampler: Sampler) -> None:
    if not sampler.each_sample_once:
        raise TrainingError(
            f"The {argument.replace('_', ' ')} {type(sampler).__name__} does not serve each sample exactly once an "
            f"epoch, so the accuracy would not be that of the test set. Use OrderedSampler."
        )
    left_out = len(sampler.dataset) - sampler.sample_count
    if left_out:
        raise TrainingError(
            f"The {argument.replace('_', ' ')} leaves out {left_out} of the {len(sampler.dataset)} samples, so the "
            f"accuracy would not be that of the test set. Use OrderedSampler, or drop_last_batch=False."
        )


def _check_different(samplers: Mapping[str, Sampler | None]) -> None:
    """Check that no sampler serves two purposes: one pass would move the other's position."""
    seen: dict[int, str] = {}
    for name, sampler in samplers.items():
        if sampler is not None and seen.setdefault(id(sampler), name) != name:
            raise TrainingError(f"{seen[id(sampler)]} and {name} are the same sampler. Make two.")
