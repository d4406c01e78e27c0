"""An optimizer on several ranks: any base optimizer, any executor, any scheme of exchange."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import State, checkpoint_errors
from deep500.core.texts import shown
from deep500.distributed.catalogue import SCHEMES
from deep500.distributed.communication import CommunicationNetwork
from deep500.distributed.communicator import Communicator
from deep500.distributed.flat_buffers import Bucket, OverlappingExecutor
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.scheme import Scheme, StepContext
from deep500.networks.parameter_updates import ParameterUpdates
from deep500.training.optimizer import Optimizer, ThreeStepOptimizer

__all__ = ["DEFAULT_BUCKET_SIZE_BYTES", "DistributedOptimizer"]

#: Size of a bucket: large enough that the latency of a message does not count, small enough to begin early.
DEFAULT_BUCKET_SIZE_BYTES = 4 << 20

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

    Attributes:
        base_optimizer: The optimizer whose step is taken. Its hyperparameters are read and written here as well.
        communicator: What carries the messages.
        communication: The same for arrays of any shape.
        scheme: What is exchanged, and when.
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
        size = check_count("bucket_size_bytes", bucket_size_bytes, least=1, error=TrainingError)
        self._context = StepContext(base_optimizer, communicator, self._update)
        self._buckets = self._context.gradients.buckets(size)
        self._check_ranks_agree(size)
        if broadcasts_start:
            self._broadcast_start()
        self.scheme.bind(self._context)

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
    def updates(self) -> ParameterUpdates:
        """What changes the parameters for the base optimizer."""
        return self.base_optimizer.updates

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on this rank's minibatch; see :meth:`Optimizer.step`.

        Returns:
            Outputs and losses of this rank's minibatch.
        """
        base, context, updates = self.base_optimizer, self._context, self.base_optimizer.updates
        context.updates_itself = True
        context.is_update = updates.pending + 1 >= base.accumulation_steps
        if isinstance(base, ThreeStepOptimizer) and not updates.pending:
            base.new_input()
            for name in self.network.get_params():
                base.prepare_param(name)
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
            "network": [(name, str(self.network.parameters[name])) for name in self.network.get_params()],
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
        executor = self.executor
        if isinstance(executor, OverlappingExecutor):
            return executor.gradient_buckets(inputs, self.loss, self._context.gradients, self._buckets, self._hand_over)
        outputs = executor.inference_and_backprop(inputs, self.loss)
        for bucket in self._buckets:
            for name in bucket.names:
                gradient, view = executor.gradient_tensor(name), self._context.gradients[name]
                view[...] = 0 if gradient is None else executor.to_numpy(executor.declared_layout(name, gradient))
            self._hand_over(bucket)
        return outputs

    def _update(self) -> None:
        """Update with the gradients in the buffers."""
        if not isinstance(self.executor, OverlappingExecutor):
            self.executor.replace_gradients(self._exchanged)
        # A framework's own optimizer updates in its own way.
        getattr(self.base_optimizer, "apply_gradients", self.updates.apply)()

    def _hand_over(self, bucket: Bucket) -> None:
        self.scheme.on_bucket(bucket, self._context)

    def _exchanged(self, gradient: Any, name: str) -> Any:
        """Return the gradient to use, in memory of its own: the optimizer may keep it, and the buffer is used again."""
        if name not in self._context.updated_names:
            return None
        native = self.executor.to_native(np.array(self._context.gradients[name]), self.network.parameters[name])
        return self.executor.held_layout(name, native)


def _digest(value: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:8], "little", signed=True)
