"""An optimizer on several ranks: any base optimizer, any executor, any scheme of exchange."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import State, checkpoint_errors
from deep500.core.texts import shown
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.communication import CommunicationNetwork
from deep500.distributed.communicator import Communicator
from deep500.distributed.failures import Shrink, Survival
from deep500.distributed.flat_buffers import Bucket, OverlappingExecutor, TakingExecutor
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.surviving_communicator import SurvivingCommunicator
from deep500.networks.parameter_updates import ParameterUpdates
from deep500.training.optimizer import Optimizer, ThreeStepOptimizer
from deep500.training.ranks import ALONE, Ranks

__all__ = ["DEFAULT_BUCKET_SIZE_BYTES", "DistributedOptimizer"]

#: Size of a bucket: large enough that the latency of a message does not count, small enough to begin early.
DEFAULT_BUCKET_SIZE_BYTES = 4 << 20

Result = TypeVar("Result")

#: What is read from and written to the base optimizer, besides its hyperparameters.
_OF_THE_BASE = ("step_count", "gradient_modifier", "accumulation_steps", "ema_decay")


class DistributedOptimizer(Optimizer):
    """Another optimizer's step on every rank, with an exchange of gradients or parameters between.

    Each rank trains on minibatches of its own. The gradient's modifier and clipping, which are the base optimizer's,
    see the gradients after the exchange, as one process with all minibatches would. Making one, like each step, is
    done on all ranks together: they compare what they were given, and take the parameters of rank 0.

    There are two ways to write an exchange. A :class:`Scheme` has hooks and serves every base optimizer. Or a class
    derives from this one and has a :meth:`step` of its own, tensor by tensor:

    Example:
        >>> class ConsistentNeighbors(DistributedOptimizer):
        ...     def step(self, inputs):
        ...         self.base_optimizer.new_input()
        ...         for param in self.network.get_params():
        ...             self.base_optimizer.prepare_param(param)
        ...         output = self.executor.inference_and_backprop(inputs, self.base_optimizer.loss)
        ...         gradients = self.network.gradient(self.base_optimizer.loss)
        ...         for param_name, grad_name in gradients:
        ...             param, grad = self.network.fetch_tensors([param_name, grad_name])
        ...             grad = self.communication.reduce_from_neighbors(grad) / 3
        ...             param = self.base_optimizer.update_rule(grad, param, param_name)
        ...             self.network.feed_tensor(param_name, param)
        ...         return output

    With a communicator that survives failures (``create_communicator(on_failure="shrink")`` makes one, a
    :class:`~deep500.distributed.surviving_communicator.SurvivingCommunicator`) training goes on with the ranks that are
    left when some fail: each step is repeated by them where it was not done by all, and means are over them.

    Attributes:
        base_optimizer: The optimizer whose step is taken. Its hyperparameters are read and written here as well.
        communicator: What carries the messages.
        communication: The same for arrays of any shape.
        scheme: What is exchanged, and when; another object of the same kind after a rank has failed.
        on_shrink: Functions that are called with a :class:`~deep500.distributed.failures.Shrink` on each rank that is
            left when others have failed, before the step is repeated: to part the samples anew.
    """

    def __init__(
        self,
        base_optimizer: Optimizer,
        communicator: Communicator | None = None,
        scheme: str | Scheme = "allreduce",
        *,
        bucket_size_bytes: int = DEFAULT_BUCKET_SIZE_BYTES,
        broadcasts_start: bool = True,
    ) -> None:
        """Wrap an optimizer.

        Args:
            base_optimizer: Any optimizer that takes one gradient a step.
            communicator: What carries the messages; by default what fits how the process was started
                (:func:`deep500.distributed.create_communicator`).
            scheme: A scheme, or the name of one that is made with its defaults.
            bucket_size_bytes: Size up to which gradients are handed to the scheme together.
            broadcasts_start: Whether all ranks start with the parameters and states of rank 0.

        Raises:
            TrainingError: An argument is not accepted, or ranks differ in network, optimizer or scheme.
            CommunicationError: No communicator was given, and none fits.
            UnknownNameError: There is no scheme of this name.
        """
        communicator = create_communicator() if communicator is None else communicator
        if not isinstance(communicator, Communicator):
            raise TrainingError(
                f"A distributed optimizer needs a communicator as its second argument; received {shown(communicator)}. "
                f"deep500.distributed.create_communicator() makes one."
            )
        self._check_base(base_optimizer)
        super().__init__(base_optimizer.executor, base_optimizer.loss)
        self.hyperparameter_names = base_optimizer.hyperparameter_names  # type: ignore[misc] # known only now
        for name in (*base_optimizer.hyperparameter_names, *_OF_THE_BASE):
            vars(self).pop(name, None)
        self.base_optimizer = base_optimizer
        self.communicator = communicator
        self.communication = CommunicationNetwork(communicator)
        self.scheme: Scheme = SCHEMES.get(scheme)() if isinstance(scheme, str) else scheme
        if not isinstance(self.scheme, Scheme):
            known = ", ".join(SCHEMES.names())
            raise TrainingError(f"scheme was given as {shown(scheme)}; accepted is a Scheme or one of: {known}.")
        self.scheme.check_hooks(communicator.size)
        size = check_count("bucket_size_bytes", bucket_size_bytes, least=1, error=TrainingError)
        self.on_shrink: list[Callable[[Shrink], None]] = []
        self._ranks: Ranks | None = None
        self._survival = Survival(self) if isinstance(communicator, SurvivingCommunicator) else None
        self._bucket_size_bytes = size
        self._begin()
        self._overlaps = isinstance(self.executor, OverlappingExecutor)
        self._takes = isinstance(self.executor, TakingExecutor)  # known now, since such a look takes microseconds
        self._check_ranks_agree(size)
        if broadcasts_start:
            self._broadcast_start()
        self.scheme.bind(self._context)
        if self._survival is not None:
            self._survival.check_bound(self._context)

    def __getattr__(self, name: str) -> Any:
        """Return what the base optimizer has."""
        base = vars(self).get("base_optimizer")
        if base is None or name not in (*base.hyperparameter_names, *_OF_THE_BASE):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(base, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, at the base optimizer if it is the base's."""
        base = vars(self).get("base_optimizer")
        if base is not None and name in (*base.hyperparameter_names, *_OF_THE_BASE):
            setattr(base, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def ranks(self) -> Ranks:
        """How all ranks agree on what decides in a training; a trainer asks for it, on all ranks together."""
        if self._ranks is None and self.communicator.stands_for_all:
            return ALONE  # there is nobody to agree with
        if self._ranks is None:
            from deep500.distributed.agreement import CommunicatorRanks  # which needs this class

            CommunicatorRanks(self.communicator).follow(self)
        assert self._ranks is not None
        return self._ranks

    @ranks.setter
    def ranks(self, ranks: Ranks) -> None:
        self._ranks = ranks

    @property
    def updates(self) -> ParameterUpdates:
        """What changes the parameters for the base optimizer."""
        return self.base_optimizer.updates

    @property
    def steps_begun(self) -> int:
        """Number of steps that were done."""
        return self._context.step

    @property
    def shares_updates(self) -> bool:
        """Whether ranks update different parameters, and have the optimizer's state of these alone."""
        return len(self._context.updated_names) < len(self._context.gradients.names)

    def together(self, action: Callable[[], Result], *, changes: bool = True) -> Result:
        """Carry out something that all ranks do together, such as a broadcast between two steps.

        Where a rank fails meanwhile and the communicator survives it, those that are left do it again, after they have
        gone back to the parameters and states from before.

        Args:
            action: Called on every rank; what it changes besides this optimizer must not matter when it is repeated.
            changes: Whether it changes this optimizer or its executor; what does not is cheaper to survive.
        """
        return action() if self._survival is None else self._survival.run(action, changes=changes)

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on this rank's minibatch; see :meth:`Optimizer.step`.

        Returns:
            Outputs and losses of this rank's minibatch.
        """
        return self.together(lambda: self._step(inputs))

    def _step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        base, context, updates = self.base_optimizer, self._context, self.base_optimizer.updates
        context.updates_itself = True
        context.is_update = updates.pending + 1 >= base.accumulation_steps
        if isinstance(base, ThreeStepOptimizer):
            base.begin_step()
        self.scheme.before_backward(context)
        outputs = self._run_backward(inputs)
        self.scheme.after_backward(context)
        context.wait()
        if context.updates_itself:
            self._update()
            if context.is_update:
                self.scheme.after_update(context)
        context.step += 1
        return outputs

    def finish(self) -> None:
        """Bring to an end what is under way between ranks; call it on all ranks after the last step.

        Asynchronous schemes need it, before a checkpoint too. Training may go on afterwards. Where a scheme exchanges
        within its steps alone, it does nothing.
        """
        self.scheme.finish(self._context)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the average of the parameters in their place; see :meth:`Optimizer.averaged`."""
        with self.base_optimizer.averaged():
            yield

    def state(self) -> State:
        """Return a snapshot of this rank: the base optimizer's, and what the scheme keeps."""
        return {
            "optimizer": type(self).__name__,
            "rank": self.communicator.rank,
            "size": self.communicator.size,
            "step": self._context.step,
            "scheme": self.scheme.state(),
            "base": self.base_optimizer.state(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        here = (type(self).__name__, self.communicator.rank, self.communicator.size)
        saved = (state.get("optimizer"), state.get("rank"), state.get("size"))
        if saved != here:
            raise CheckpointError(
                f"The checkpoint is of the optimizer {shown(saved[0])} on rank {saved[1]} of {saved[2]}; this one is "
                f"{here[0]!r} on rank {here[1]} of {here[2]}. Go on with the optimizer and the ranks that were used."
            )
        step = int(state["step"])
        with checkpoint_errors("a scheme"):
            self.scheme.check(state["scheme"])
        self.base_optimizer.restore(state["base"])
        self.scheme.restore(state["scheme"])
        self._context.step = step

    def snapshot(self) -> State:
        """Return what :meth:`rejoin` goes back to: the state of this rank and of its executor."""
        return {"executor": self.executor.state(), "optimizer": self.state()}

    def rejoin(self, scheme: Scheme, before: State) -> Any:
        """Go back to a snapshot with the ranks that there are now, all together; the first one's parameters count.

        Args:
            scheme: As the one in use was before it was bound.
            before: What :meth:`snapshot` returned.

        Returns:
            What was in use before, whose buffers may be part of exchanges that failed.
        """
        own, abandoned = before["optimizer"], self._context
        self.executor.restore(before["executor"])
        self.base_optimizer.restore(own["base"])
        self.communication = CommunicationNetwork(self.communicator)
        self.scheme = scheme
        self._begin()
        self._context.step = own["step"]
        self._broadcast_start()
        scheme.bind(self._context)
        scheme.restore(own["scheme"])
        return abandoned

    def _begin(self) -> None:
        """Make the buffers of the gradients."""
        self._context = StepContext(self.base_optimizer, self.communicator, self._update)
        self._buckets = self._context.gradients.buckets(self._bucket_size_bytes)

    def _check_base(self, base: Any) -> None:
        if not isinstance(base, Optimizer):
            raise TrainingError(
                f"A distributed optimizer needs an optimizer as its first argument; received {shown(base)}."
            )
        is_usual = isinstance(base, ThreeStepOptimizer) and type(base).step is ThreeStepOptimizer.step
        takes_one = getattr(base, "uses_one_gradient", True)
        if not takes_one or not (is_usual or hasattr(base, "apply_gradients")):
            raise TrainingError(
                f"{type(base).__name__} has a step of its own, in which no exchange can take place; accepted are "
                f"optimizers that take one gradient a step: ThreeStepOptimizers and the frameworks' own."
            )

    def _check_ranks_agree(self, bucket_size_bytes: int) -> None:
        """Compare what ranks were given: what differs would hang later, or train something else in silence.

        Raises:
            TrainingError: Ranks differ.
        """
        base = self.base_optimizer
        given = {
            "network": [(name, str(descriptor)) for name, descriptor in self._context.descriptors.items()],
            "base optimizer": [type(base).__name__, base.accumulation_steps]
            + [(name, getattr(base, name)) for name in base.hyperparameter_names],
            "scheme": [type(self).__name__, type(self.scheme).__name__, self.scheme.arguments(), bucket_size_bytes],
        }
        digests = np.array([_digest(value) for value in given.values()], np.int64)
        gathered = np.empty(self.communicator.size * digests.size, np.int64)
        self.communicator.allgather(digests, gathered)
        for what, column in zip(given, gathered.reshape(self.communicator.size, -1).T, strict=True):
            others = np.flatnonzero(column != column[0])
            if others.size:
                raise TrainingError(
                    f"The ranks were given different arguments: the {what} of ranks {', '.join(map(str, others))} "
                    f"is not that of rank 0; here, on rank {self.communicator.rank}, it is {given[what]!r:.300}. Give "
                    f"every rank the same."
                )

    def _broadcast_start(self) -> None:
        for buffer in self._context.fetch_parameters():
            self.communicator.broadcast(buffer.array, root=0)
        self._context.feed_parameters()
        for name in self.network.states:
            value = self.communication.sync_all_with_root(self.executor.fetch(name))
            self.executor.feed(name, value)

    def _run_backward(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the network and differentiate, and hand the gradients to the scheme bucket by bucket."""
        executor: Any = self.executor
        if self._context.differentiate is not None:
            return self._context.differentiate(inputs, self.loss)
        if self._overlaps:
            gradients, buckets = self._context.gradients, self._buckets
            overlapped: dict[str, Any]
            overlapped = executor.gradient_buckets(inputs, self.loss, gradients, buckets, self._hand_over)
            return overlapped
        outputs: dict[str, Any]
        outputs = executor.inference_and_backprop(inputs, self.loss)
        for bucket in self._buckets:
            for name in bucket.names:
                gradient, view = executor.gradient_tensor(name), self._context.gradients[name]
                view[...] = 0 if gradient is None else executor.to_numpy(executor.declared_layout(name, gradient))
            self._hand_over(bucket)
        return outputs

    def _update(self) -> None:
        """Update with the gradients in the buffers."""
        executor: Any = self.executor
        in_place = self._overlaps or self._context.differentiate is not None
        if in_place and self._takes:
            executor.take_exchanged(self._context.gradients)
        if not in_place or self._needs_own_gradients():
            self.executor.replace_gradients(self._exchanged)
        if not in_place:
            self._take_ignored()
        # A framework's own optimizer updates in its own way.
        getattr(self.base_optimizer, "apply_gradients", self.updates.apply)()

    def _take_ignored(self) -> None:
        """Take what others have for parameters that this rank's loss ignored, or replicas would differ."""
        for name in self._context.updated_names:
            if self.executor.gradient_tensor(name) is None and self._context.gradients[name].any():
                self.executor._set_gradient(name, self._exchanged(None, name))

    def _needs_own_gradients(self) -> bool:
        """Whether gradients in the buffers do not do: they may be kept after this step, or are not all used."""
        base = self.base_optimizer
        may_keep = isinstance(base, ThreeStepOptimizer) and not base.is_pure
        return may_keep or self.shares_updates or base.gradient_modifier is not None or base.accumulation_steps > 1

    def _hand_over(self, bucket: Bucket) -> None:
        self.scheme.on_bucket(bucket, self._context)

    def _exchanged(self, gradient: Any, name: str) -> Any:
        """Return the gradient to use, in memory of its own: the optimizer may keep it, and the buffer is used again."""
        if name not in self._context.updated_names:
            return None
        value: Any = self._context.gradients[name]
        if self._context.differentiate is not None:
            value = self.executor.to_numpy(self.executor.declared_layout(name, gradient))
        native = self.executor.to_native(np.array(value), self._context.descriptors[name])
        return self.executor.held_layout(name, native)


def _digest(value: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:8], "little", signed=True)
