"""The contract of a scheme: what ranks exchange in a training step, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import State
from deep500.core.texts import shown
from deep500.distributed.communicator import Communicator, Work
from deep500.distributed.flat_buffers import Bucket, FlatBuffers, FlatExecutor
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.optimizer import Optimizer

__all__ = ["HOOKS", "Scheme", "StepContext"]

#: The methods of a scheme in which ranks can exchange something.
HOOKS = ("bind", "before_backward", "on_bucket", "after_backward", "after_update", "finish")


class StepContext:
    """What a scheme has at hand in a step.

    Attributes:
        communicator: What carries the messages.
        base_optimizer: The optimizer that makes the update of this rank.
        executor: Holds the parameters.
        descriptors: Dtype and shape of each parameter, by name; a network takes its time to tell them.
        gradients: The gradients in flat buffers; what stands there after ``after_backward`` is what the update uses.
        step: Number of minibatches before this one.
        is_update: Whether the parameters are updated in this step; not while gradients are accumulated.
        updates_done: Number of updates that are finished.
        updated_names: The parameters that this rank updates.
        updates_itself: Whether the base optimizer updates in this step, as it does unless a scheme says otherwise.
        update: Updates the parameters with the gradients in the buffers, once more than the step does.
        differentiate: Runs the network and leaves gradients of the whole at the executor, in the place of backward and
            exchange; called with inputs and loss. ``None``, as it is unless a scheme says otherwise, for those.
    """

    def __init__(self, base_optimizer: Optimizer, communicator: Communicator, update: Callable[[], None]) -> None:
        """Make the buffers of the gradients.

        Args:
            base_optimizer: The optimizer that makes the update of this rank.
            communicator: What carries the messages.
            update: Updates the parameters with the gradients in the buffers.
        """
        self.update = update
        self.updates_itself = True
        self.differentiate: Callable[[Mapping[str, Any], str], dict[str, Any]] | None = None
        self.communicator = communicator
        self.base_optimizer = base_optimizer
        self.executor: GraphExecutor = base_optimizer.executor
        self.descriptors = dict(self.executor.network.parameters)
        self.gradients = FlatBuffers(self.descriptors)
        self.step = 0
        self.is_update = True
        self.updated_names: frozenset[str] = frozenset(self.descriptors)
        self._parameters: FlatBuffers | None = None
        self._are_laid = False
        self._works: list[Work] = []

    @property
    def updates_done(self) -> int:
        """Number of updates that are finished."""
        return self.base_optimizer.step_count

    def fetch_parameters(self) -> FlatBuffers:
        """Return the parameters as they are now in flat buffers; :meth:`feed_parameters` sets what is changed there.

        Where the framework allows, the buffers are the parameters' own memory, and changes count at once.
        """
        if self._parameters is None:
            self._parameters = FlatBuffers(self.descriptors)
        self._are_laid = isinstance(self.executor, FlatExecutor) and self.executor.lay_parameters(self._parameters)
        if self._are_laid:
            return self._parameters
        for name in self.descriptors:
            stored = self.executor.declared_layout(name, self.executor.stored_tensor(name))
            self._parameters[name][...] = self.executor.to_numpy(stored)
        return self._parameters

    def feed_parameters(self) -> None:
        """Set the parameters to what stands in the buffers that :meth:`fetch_parameters` returned."""
        if self._parameters is None:
            raise TrainingError("feed_parameters() was called before fetch_parameters(), which makes the buffers.")
        if not self._are_laid:
            for name in self.descriptors:
                self.executor.feed(name, self._parameters[name])

    def mean_later(self, array: NDArray[Any]) -> None:
        """Begin to replace an array by its mean over all ranks; :meth:`wait` finishes.

        Where the communicator cannot go on by itself, the mean is there at once.
        """
        if self.communicator.capabilities.nonblocking:
            self._works.append(self.communicator.iallreduce(array, "mean"))
        else:
            self.communicator.allreduce(array, "mean")

    def wait(self) -> None:
        """Wait for all that :meth:`mean_later` has begun; done after ``after_backward`` in any case."""
        works, self._works = self._works, []
        for work in works:
            work.wait()


class Scheme:
    """How ranks exchange gradients or parameters. A scheme overrides the hooks that it needs; each does nothing here.

    Every rank makes a scheme of its own with equal arguments, which are its public attributes that are numbers or
    texts. All hooks run on every rank in the same order, so that what they exchange meets.

    Attributes:
        kept: Names of the attributes that go on from step to step and into checkpoints: numbers, arrays, and
            dictionaries of them.
        keeps_replicas_equal: Whether ranks that start with equal parameters have equal ones after every update.

    Example:
        >>> class AllReduce(Scheme):
        ...     def on_bucket(self, bucket, context):
        ...         context.mean_later(bucket.array)
    """

    kept: ClassVar[tuple[str, ...]] = ()
    keeps_replicas_equal: ClassVar[bool] = True
    _is_bound = False

    def check_hooks(self, size: int) -> None:
        """Check that the scheme does anything in a step or at its ends, where there are other ranks.

        Raises:
            TrainingError: It overrides no hook.
        """
        if size > 1 and not any(h in vars(self) or getattr(type(self), h) is not getattr(Scheme, h) for h in HOOKS):
            raise TrainingError(
                f"The scheme {type(self).__name__} overrides no hook, so that each rank would train by itself. "
                f"Accepted is one that exchanges something in one of: {', '.join(HOOKS)}."
            )

    def bind(self, context: StepContext) -> None:
        """Get ready for one optimizer, on all ranks together.

        Raises:
            TrainingError: The scheme belongs to an optimizer already.
        """
        if self._is_bound:
            raise TrainingError(
                f"This {type(self).__name__} belongs to an optimizer already, and keeps what it needs for it. Make one "
                f"for each optimizer."
            )
        self._is_bound = True

    def before_backward(self, context: StepContext) -> None:
        """Called before the network runs; the parameters may be changed."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        """Called for each bucket when its gradients are there, where the framework allows while backward goes on."""

    def after_backward(self, context: StepContext) -> None:
        """Called when all gradients are there; both they and the parameters may be changed."""

    def after_update(self, context: StepContext) -> None:
        """Called after each update; the parameters may be changed."""

    def finish(self, context: StepContext) -> None:
        """Bring to an end what is under way between ranks; see :meth:`DistributedOptimizer.finish`."""

    def arguments(self) -> State:
        """Return what the scheme was made with: its public attributes that are not kept, numbers and texts."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        plain = (bool, int, float, str, type(None))
        return {name: value for name, value in public.items() if name not in self.kept and isinstance(value, plain)}

    def state(self) -> State:
        """Return a snapshot of what this rank keeps; see :class:`deep500.core.stateful.Stateful`.

        Raises:
            TrainingError: What is to be kept is not there.
        """
        missing = [name for name in self.kept if not hasattr(self, name)]
        if missing:
            raise TrainingError(
                f"{type(self).__name__} names {', '.join(map(repr, missing))} in its attribute 'kept', and has no such "
                f"attribute. Set each in __init__, so that a checkpoint has it."
            )
        return {
            "scheme": type(self).__name__,
            "arguments": self.arguments(),
            "kept": {name: _copied(getattr(self, name)) for name in self.kept},
        }

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that a snapshot is of a scheme like this one.

        Raises:
            CheckpointError: It is not.
        """
        here = (type(self).__name__, self.arguments(), sorted(self.kept))
        saved = (state.get("scheme"), state.get("arguments"), sorted(state.get("kept") or ()))
        for what, received, expected in zip(("scheme", "arguments", "kept values"), saved, here, strict=True):
            if received != expected:
                raise CheckpointError(
                    f"The checkpoint's scheme has the {what} {shown(received)}; here it is {shown(expected)}. Go on "
                    f"with the scheme that was used."
                )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of another scheme; nothing is changed then.
        """
        self.check(state)
        for name in self.kept:
            setattr(self, name, _copied(state["kept"][name]))


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return np.array(value) if isinstance(value, np.ndarray) else value
