"""The loop that trains a network and tests it after each epoch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError, near_miss
from deep500.core.event import Event, StopRun
from deep500.measure.regions import region
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.listeners import Listeners, attached
from deep500.training.optimizer import Optimizer
from deep500.training.pass_meter import PassMeter
from deep500.training.sampler import Sampler
from deep500.training.statistics import EpochRecord, Outcome, PassRecord, TrainingStatistics

__all__ = ["Trainer", "default_trainer_events"]


def default_trainer_events(epochs: int) -> list[Event]:
    """Return the events of a training that was given none: a progress bar, silent unless stderr is a terminal."""
    from deep500.training.events.progress_bar import TerminalBarEvent

    return [TerminalBarEvent(epochs)]


class Trainer:
    """Trains a network epoch by epoch, and tests it after each.

    Attributes:
        train_sampler: Serves the training set.
        validation_sampler: Serves the test set; ``None`` when there is none.
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
    ) -> None:
        """Bring together what a training needs.

        Args:
            train_sampler: Serves the training set.
            validation_sampler: Serves the test set, all of it; ``None`` not to test.
            executor: What runs the network.
            optimizer: What updates its parameters, made for this executor.
            network_output: Name of the output that holds the class scores; by default the only output.

        Raises:
            TrainingError: An argument is not what it should be, the optimizer was made for another executor, the
                validation sampler leaves samples out, or the network has no such output.
        """
        _check_kind("train_sampler", train_sampler, Sampler, "ShuffleSampler(dataset, batch_size)")
        if validation_sampler is not None:
            _check_kind("validation_sampler", validation_sampler, Sampler, "OrderedSampler(dataset, batch_size)")
            _check_covers(validation_sampler)
        if validation_sampler is train_sampler:
            raise TrainingError("train_sampler and validation_sampler are the same sampler. Make two.")
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
        self.executor = executor
        self.optimizer = optimizer
        self.network_output = outputs[0] if network_output is None and len(outputs) == 1 else network_output
        self.statistics: TrainingStatistics | None = None

    def run_loop(
        self, epochs: int, events: Iterable[Event] | None = None, *, test_before: bool = False
    ) -> TrainingStatistics:
        """Train, and test after each epoch.

        Each pass is a region, ``"training set"`` or ``"test set"`` (:mod:`deep500.measure.regions`).

        The samplers continue where they are: a first run starts at their epoch 0, a second run at the epoch after the
        last one. The network is in training mode while it trains and in evaluation mode while it is tested; in the
        end it has the mode that it had before.

        Args:
            epochs: Number of epochs.
            events: Listeners of any kind, attached to executor and samplers for this run only; by default a progress
                bar, silent unless stderr is a terminal. An event may raise ``StopTraining`` at any hook.
            test_before: Whether to test once before training too.

        Returns:
            What was measured. After a ``KeyboardInterrupt`` or another exception, which is raised on, it is in
            :attr:`statistics`, where ``complete`` is false.

        Raises:
            TrainingError: An argument is not accepted, or the optimizer returns no loss.
        """
        check_count("epochs", epochs, least=0, error=TrainingError)
        listeners = Listeners(default_trainer_events(int(epochs)) if events is None else events)
        test_batch_size = self.validation_sampler.batch_size if self.validation_sampler else None
        stats = TrainingStatistics(int(epochs), self.train_sampler.batch_size, test_batch_size)
        self.statistics = stats
        network = self.executor.network
        mode_before = network.mode
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: network.train() if mode_before == "train" else network.eval())
            stack.enter_context(attached(self.executor.events, listeners.executor))
            stack.enter_context(attached(self.train_sampler.events, listeners.sampler))
            if self.validation_sampler is not None:
                stack.enter_context(attached(self.validation_sampler.events, listeners.sampler))
            self._run(stats, listeners, test_before)
        return stats

    def why_no_accuracy(self, sampler: Sampler | None) -> str | None:
        """Return why accuracy cannot be counted on what a sampler serves; ``None`` when it can."""
        if sampler is None:
            return "there is no validation sampler"
        if sampler.dataset.label_node is None or sampler.dataset.classes is None:
            return "the data set does not say that its labels are class numbers (classes)"
        if self.network_output is None:
            return f"network_output does not name one of the outputs ({', '.join(self.executor.network.outputs)})"
        return None

    def _run(self, stats: TrainingStatistics, listeners: Listeners, test_before: bool) -> None:
        try:
            listeners.notify("before_training", self, stats)
            if test_before:
                self._test(stats, listeners, None)
            for epoch in range(stats.epochs_planned):
                listeners.notify("before_epoch", epoch, self, stats)
                record = EpochRecord(epoch)
                stats.epochs.append(record)
                self._train(stats, listeners, record)
                self._test(stats, listeners, record)
                listeners.notify("after_epoch", epoch, self, stats)
            stats.outcome = Outcome.COMPLETED
        except StopRun:
            stats.outcome = Outcome.STOPPED
        except KeyboardInterrupt:
            stats.outcome = Outcome.INTERRUPTED
            raise
        except BaseException:
            stats.outcome = Outcome.FAILED
            raise
        finally:
            _tell_the_end(listeners, self, stats)

    @region("training set")
    def _train(self, stats: TrainingStatistics, listeners: Listeners, record: EpochRecord) -> None:
        sampler = self.train_sampler
        if sampler.position:
            sampler.reset()
        self.executor.network.train()
        listeners.notify("before_training_set", self, stats, sampler)
        counts = listeners.need_training_accuracy and self.why_no_accuracy(sampler) is None
        meter = self._meter(sampler, counts)
        try:
            for batch in sampler:
                for before in listeners.before_step:
                    before(self.executor, batch)
                outputs = self.optimizer.step(batch)
                loss = self._loss(outputs)
                meter.add(batch, outputs)
                for after in listeners.after_step:
                    after(self.executor, outputs, loss)
        except (StopRun, KeyboardInterrupt):
            record.training = meter.finish(complete=False)
            raise
        record.training = meter.finish(complete=True)
        listeners.notify("after_training_set", self, stats)

    def _test(self, stats: TrainingStatistics, listeners: Listeners, record: EpochRecord | None) -> None:
        """Test, if there is a test set."""
        if self.validation_sampler is not None:
            self._test_on(self.validation_sampler, stats, listeners, record)

    @region("test set")
    def _test_on(
        self, sampler: Sampler, stats: TrainingStatistics, listeners: Listeners, record: EpochRecord | None
    ) -> None:
        """Test, and put the result in the epoch's record, or where the test before training belongs."""

        def keep(result: PassRecord) -> None:
            if record is None:
                stats.initial_test = result
            else:
                record.test = result

        if sampler.position:
            sampler.reset()
        self.executor.network.eval()
        listeners.notify("before_test_set", self, stats, sampler)
        meter = self._meter(sampler, self.why_no_accuracy(sampler) is None)
        try:
            for batch in sampler:
                listeners.notify("before_test_batch", self, stats, batch)
                outputs = self.executor.inference(batch)
                meter.add(batch, outputs)
                listeners.notify("after_test_batch", self, stats, outputs)
        except (StopRun, KeyboardInterrupt):
            keep(meter.finish(complete=False))
            raise
        keep(meter.finish(complete=True))
        listeners.notify("after_test_set", self, stats)

    def _meter(self, sampler: Sampler, counts: bool) -> PassMeter:
        scores = self.network_output if counts else None
        return PassMeter(self.executor, self.optimizer.loss, scores, sampler.dataset.label_node)

    def _loss(self, outputs: Any) -> Any:
        try:
            return outputs[self.optimizer.loss]
        except (TypeError, KeyError):
            received = ", ".join(map(str, outputs)) if isinstance(outputs, dict) else type(outputs).__name__
            raise TrainingError(
                f"{type(self.optimizer).__name__}.step must return the outputs by name with the loss "
                f"{self.optimizer.loss!r} among them; it returned {received}."
            ) from None


def _tell_the_end(listeners: Listeners, trainer: Trainer, stats: TrainingStatistics) -> None:
    """Tell every event that the training has ended, in order; one that raises keeps no other from being told."""

    def tell(event: Any) -> None:
        with contextlib.suppress(StopRun):  # it has ended already
            event.after_training(trainer, stats)

    with contextlib.ExitStack() as stack:
        for event in reversed(listeners.runner):
            stack.callback(tell, event)


def _check_kind(argument: str, value: Any, kind: type, example: str) -> None:
    if not isinstance(value, kind):
        raise TrainingError(
            f"{argument} was given as {type(value).__name__}; accepted is a {kind.__name__}, such as {example}."
        )


def _check_covers(sampler: Sampler) -> None:
    left_out = len(sampler.dataset) - sampler.sample_count
    if left_out:
        raise TrainingError(
            f"The validation sampler leaves out {left_out} of the {len(sampler.dataset)} samples, so the accuracy "
            f"would not be that of the test set. Use OrderedSampler, or drop_last_batch=False."
        )
