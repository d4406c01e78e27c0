"""One run of a trainer: the loop over epochs and steps, and where in it a snapshot was taken."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.event import StopRun
from deep500.core.stateful import State, Stateful, checkpoint_errors
from deep500.measure.regions import region
from deep500.training._hooks import AgreedStop, Hooks
from deep500.training._pass_parts import merged_steps, merged_tests
from deep500.training.budget import Budget
from deep500.training.listeners import Listeners
from deep500.training.pass_meter import PassMeter
from deep500.training.sampler import Batch, Sampler
from deep500.training.statistics import EpochRecord, Evaluation, Outcome, PassRecord, TrainingStatistics

if TYPE_CHECKING:
    from deep500.training.trainer import Trainer

__all__ = ["TrainingRun"]

_logger = logging.getLogger(__name__)


class TrainingRun:
    """The loop of one call of :meth:`Trainer.run_loop`.

    Several ranks go through it in step: whatever depends on a clock or on events is decided by rank 0, and passes are
    recorded as those of one process that has all ranks' minibatches.
    """

    def __init__(
        self,
        trainer: Trainer,
        stats: TrainingStatistics,
        listeners: Listeners,
        budget: Budget,
        evaluate_every: int | None,
        snapshot: Mapping[str, Any] | None,
    ) -> None:
        """Prepare a run.

        Args:
            trainer: What is trained with what.
            stats: What is filled; of a run that goes on, what there is already.
            listeners: Who is told.
            budget: When it ends.
            evaluate_every: Number of steps between two tests.
            snapshot: What :meth:`Trainer.state` returned, to go on from; its parts are restored already.
        """
        self._trainer = trainer
        self._stats = stats
        self._listeners = listeners
        self._ranks = trainer.optimizer.ranks
        self._hooks = Hooks(listeners, self._ranks)
        self._tests_alone = not self._ranks.replicas_equal or self._hooks.need_whole_test()
        self._budget = budget
        self._evaluates_every = evaluate_every if trainer.validation_sampler is not None else None
        self._snapshot = snapshot
        self._meter: PassMeter | None = None  # of the pass over the training set that is under way
        self._is_testing = False

    def run(self, *, test_before: bool) -> None:
        """Run until the budget is spent."""
        stats, trainer = self._stats, self._trainer
        stopped = stats.outcome is Outcome.STOPPED
        try:
            record = self._begin(stopped)
            stats.outcome = Outcome.RUNNING
            if stopped:
                stats.outcome = Outcome.STOPPED
                return
            if test_before and stats.initial_test is None and not stats.steps:
                self._test(trainer.validation_sampler, lambda result: setattr(stats, "initial_test", result))
            while record is not None or not self._budget.is_spent(stats):
                self._epoch(record)
                record = None
            if stats.final_test is None:
                self._test(trainer.test_sampler, lambda result: setattr(stats, "final_test", result))
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
            self._tell_the_end()

    def state(self) -> State:
        """Return where in the loop it is, and what the events remember.

        Raises:
            CheckpointError: It is within a step or a test.
        """
        if self._is_testing:
            raise CheckpointError("A checkpoint cannot be made within a test; the hook after_test_set comes next.")
        if self._meter is not None and self._meter.batches != self._trainer.train_sampler.position:
            raise CheckpointError("A checkpoint cannot be made within a step; the hook after_step comes next.")
        return {
            "pass": None if self._meter is None else self._meter.state(),
            "events": {name: event.state() for name, event in self._listeners.remembering().items()},
        }

    def _begin(self, stopped: bool) -> EpochRecord | None:
        """Tell that the training begins, or goes on; return the epoch that is under way."""
        stats, hooks, trainer = self._stats, self._hooks, self._trainer
        hooks.notify("before_training", trainer, stats)
        if self._snapshot is None:
            return None
        record = stats.epochs[-1] if len(stats.epochs) > stats.epochs_done and not stopped else None
        if record is not None:
            hooks.notify("before_epoch", record.epoch, trainer, stats)
            if record.training is None and self._snapshot.get("pass") is not None:
                hooks.notify("before_training_set", trainer, stats, trainer.train_sampler)
                self._meter = self._new_meter(trainer.train_sampler, self._counts_training())
                with checkpoint_errors("a pass that was under way"):
                    self._meter.restore(self._snapshot["pass"])
        self._restore_events(self._snapshot.get("events", {}))
        self._snapshot = None
        return record

    def _restore_events(self, states: Mapping[str, Any]) -> None:
        remembering = self._listeners.remembering()
        for name, state in states.items():
            if name in remembering:
                with checkpoint_errors(f"the event {name}"):
                    remembering[name].restore(state)
            else:
                _logger.warning("The checkpoint has a state of the event %s, which this training has not.", name)

    def _epoch(self, record: EpochRecord | None) -> None:
        """Run an epoch, or what is left of the one that a record is of."""
        stats, hooks, trainer = self._stats, self._hooks, self._trainer
        if record is None:
            epoch = stats.epochs_done
            hooks.notify("before_epoch", epoch, trainer, stats)
            record = EpochRecord(epoch)
            stats.epochs.append(record)
        if record.training is None:
            self._train(record)
        if record.test is None:
            self._test(trainer.validation_sampler, lambda result: setattr(record, "test", result))
        stats.epochs_done = record.epoch + 1
        hooks.notify("after_epoch", record.epoch, trainer, stats)

    def _train(self, record: EpochRecord) -> None:
        stats, hooks, trainer = self._stats, self._hooks, self._trainer
        sampler = trainer.train_sampler
        trainer.executor.network.train()
        if self._meter is None:
            if sampler.position:
                sampler.reset()
            hooks.notify("before_training_set", trainer, stats, sampler)
            self._meter = self._new_meter(sampler, self._counts_training())
        meter = self._meter

        def close(complete: bool, *, together: bool = True) -> None:
            is_shared = self._ranks.size > 1 or meter.most_ranks > 1
            merge = self._merge_steps if together and is_shared else None
            record.training = meter.finish(complete=complete, merge=merge)
            record.steps, record.training_s = stats.steps, stats.training_s
            self._meter = None

        try:
            is_over = False
            while not is_over:
                if self._is_test_due():
                    self._evaluate(meter, record)
                is_over = self._is_pass_over(meter) or self._timed_steps(meter)
        except StopRun:
            close(complete=False)
            raise
        except KeyboardInterrupt:  # other ranks may not know of it
            close(complete=False, together=False)
            raise
        close(complete=True)
        hooks.notify("after_training_set", trainer, stats)

    @region("training set")
    def _timed_steps(self, meter: PassMeter) -> bool:
        """Run :meth:`_steps` while the clock of the training runs, and wait for what steps have left under way."""
        meter.go_on()
        try:
            is_over = self._steps(meter)
        except StopRun as stop:
            if self._ranks.size > 1 and not isinstance(stop, AgreedStop):
                raise TrainingError(
                    "StopTraining was raised within a step, where ranks cannot agree to stop. Accepted is a hook of "
                    "the trainer or the optimizer, such as after_step; raise it there."
                ) from stop
            self._trainer.optimizer.finish()
            raise
        else:
            self._trainer.optimizer.finish()
            return is_over
        finally:
            meter.pause()

    def _steps(self, meter: PassMeter) -> bool:
        """Train until the set is over, a test is due or the budget is spent; return whether the set is over."""
        stats, hooks, trainer = self._stats, self._hooks, self._trainer
        executor, optimizer = trainer.executor, trainer.optimizer
        loss_name, take_step = optimizer.loss, optimizer.step
        before, after = hooks.before_training_step, hooks.after_training_step
        ranks = self._ranks
        looks = self._evaluates_every is not None or self._budget.kind != "epochs"
        for batch in trainer.train_sampler:
            step = stats.steps
            for hook in before:
                hook(step, trainer, stats, batch)
            for hook in hooks.before_step:
                hook(executor, batch)
            outputs = take_step(batch)
            try:
                loss = outputs[loss_name]
            except (TypeError, KeyError):
                raise self._no_loss(outputs) from None
            size = ranks.size  # now: the step may have been repeated without a rank
            stats.samples += meter.add(batch, outputs, size) * size
            stats.steps = step + 1
            for hook in hooks.after_step:
                hook(executor, outputs, loss)
            for hook in after:
                hook(step, trainer, stats, outputs, loss)
            if looks and (self._is_test_due() or self._is_budget_spent(meter)):
                return False
        return True

    def _is_budget_spent(self, meter: PassMeter) -> bool:
        kind = self._budget.kind
        running_s = meter.seconds() if kind == "time_limit_s" else 0.0
        is_spent = kind != "epochs" and self._budget.is_spent(self._stats, running_s)
        return bool(self._ranks.decided_in_step(int(is_spent))) if kind == "time_limit_s" else is_spent

    def _is_pass_over(self, meter: PassMeter) -> bool:
        sampler = self._trainer.train_sampler
        return sampler.position >= len(sampler) or self._is_budget_spent(meter)

    def _is_test_due(self) -> bool:
        """Whether it is time for a test between two steps; the one after the last step is the epoch's own."""
        every, steps = self._evaluates_every, self._stats.steps
        if every is None or steps % every or not steps:
            return False
        sampler, meter = self._trainer.train_sampler, self._meter
        if meter is not None and (sampler.position >= len(sampler) or self._is_budget_spent(meter)):
            return False
        evaluations = self._stats.evaluations
        ended = self._stats.epochs[-2].steps if len(self._stats.epochs) > 1 else 0
        return steps != ended and not (evaluations and evaluations[-1].step == steps)

    def _evaluate(self, meter: PassMeter, record: EpochRecord) -> None:
        """Test between two steps; the clock of the training stands still."""
        stats = self._stats
        stats.running_s = meter.pause()
        steps, training_s = stats.steps, stats.training_s

        def keep(result: PassRecord) -> None:
            stats.evaluations.append(Evaluation(steps, record.epoch, training_s, result))

        try:
            self._test(self._trainer.validation_sampler, keep)
        finally:
            self._trainer.executor.network.train()

    def _test(self, sampler: Sampler | None, keep: Callable[[PassRecord], None]) -> None:
        """Test, if there is a set for it."""
        if sampler is not None:
            self._test_on(sampler, keep)

    @region("test set")
    def _test_on(self, sampler: Sampler, keep: Callable[[PassRecord], None]) -> None:
        """Test, and hand on the result, that of a test which an event ends too."""
        record, stop = self._tested(sampler, keep)
        while record is None:  # a rank was lost, and its minibatches with it: those that are left begin anew
            record, stop = self._tested(sampler, keep)
        keep(record)
        if not record.complete:
            raise stop or AgreedStop
        self._hooks.notify("after_test_set", self._trainer, self._stats)

    def _tested(self, sampler: Sampler, keep: Callable[[PassRecord], None]) -> tuple[PassRecord | None, StopRun | None]:
        """Test once; return the result, none where a rank was lost meanwhile, and what has ended it."""
        stats, hooks, trainer = self._stats, self._hooks, self._trainer
        self._is_testing = True
        if sampler.position:
            sampler.reset()
        trainer.executor.network.eval()
        hooks.notify("before_test_set", trainer, stats, sampler)
        members = self._ranks.members
        meter = self._new_meter(sampler, trainer.why_no_accuracy(sampler) is None)
        stop: StopRun | None = None
        try:
            for batch in self._share(sampler):
                hooks.notify_in_test("before_test_batch", trainer, stats, batch)
                outputs = trainer.executor.inference(batch)
                meter.add(batch, outputs)
                hooks.notify_in_test("after_test_batch", trainer, stats, outputs)
        except StopRun as raised:
            stop = raised
        except KeyboardInterrupt:
            keep(meter.finish(complete=False))
            raise
        finally:
            self._is_testing = False
        is_stopped = self._ranks.decided(stop is not None)
        merge = self._merge_tests if self._ranks.size > 1 else None
        record = meter.finish(complete=not is_stopped, merge=merge)
        return (record if self._ranks.members == members else None), stop

    def _share(self, sampler: Sampler) -> Iterator[Batch]:
        """Yield this rank's minibatches of a test; those of all ranks are each minibatch once.

        Where replicas differ, or a transformation remembers what came before, rank 0 has them all.
        """
        ranks = self._ranks
        if ranks.size == 1:
            yield from sampler
            return
        is_alone = self._tests_alone or any(isinstance(made, Stateful) for made in sampler.transformations)
        own = range(ranks.rank, len(sampler), ranks.size)
        if is_alone:
            own = range(len(sampler)) if ranks.is_first else range(0)
        for position in own:
            sampler.position = position
            yield next(sampler)
        sampler.position = len(sampler)  # the epoch is over on every rank

    def _merge_steps(self, parts: dict[str, Any]) -> dict[str, Any]:
        return merged_steps(self._ranks.gathered(parts))

    def _merge_tests(self, parts: dict[str, Any]) -> dict[str, Any]:
        return merged_tests(self._ranks.gathered(parts))

    def _counts_training(self) -> bool:
        sampler = self._trainer.train_sampler
        counts = self._listeners.need_training_accuracy and self._trainer.why_no_accuracy(sampler) is None
        return bool(self._ranks.decided(counts))  # an event of rank 0 alone may need it

    def _new_meter(self, sampler: Sampler, counts: bool) -> PassMeter:
        scores = self._trainer.network_output if counts else None
        return PassMeter(self._trainer.executor, self._trainer.optimizer.loss, scores, sampler.dataset.label_node)

    def _no_loss(self, outputs: Any) -> TrainingError:
        optimizer = self._trainer.optimizer
        received = ", ".join(map(str, outputs)) if isinstance(outputs, dict) else type(outputs).__name__
        return TrainingError(
            f"{type(optimizer).__name__}.step must return the outputs by name with the loss {optimizer.loss!r} among "
            f"them; it returned {received}."
        )

    def _tell_the_end(self) -> None:
        """Tell every event that the training has ended, in order; one that raises keeps no other from being told."""

        def tell(event: Any) -> None:
            with contextlib.suppress(StopRun):  # it has ended already
                event.after_training(self._trainer, self._stats)

        with contextlib.ExitStack() as stack:
            for event in reversed(self._listeners.runner):
                stack.callback(tell, event)
