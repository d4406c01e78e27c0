"""What all optimizers share: options, groups of parameters, the average, checkpoints."""

from __future__ import annotations

import abc
import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from deep500.core.counts import check_count
from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.stateful import State, checkpoint_errors
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.parameter_updates import ParameterUpdates, StepScalars
from deep500.training._attribute_state import restored_value
from deep500.training._gradient_modifier import check_like, three_arguments
from deep500.training.hyperparameters import finite, positive
from deep500.training.optimizer_options import OptimizerOptions, checked_options
from deep500.training.parameter_groups import ParameterGroups
from deep500.training.ranks import ALONE, Ranks

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["COMMON_HYPERPARAMETERS", "Optimizer"]

#: Hyperparameters that every optimizer has.
COMMON_HYPERPARAMETERS = ("weight_decay", "clip_value", "clip_norm")


class Optimizer(abc.ABC):
    """Makes a loss smaller, one minibatch a step.

    Creating an optimizer puts the executor's network in training mode.

    Attributes:
        executor: What runs the network.
        network: The network, bound to the executor.
        loss: Name of the output that is made small.
        hyperparameter_names: Names of the attributes that may be changed between steps. A class names its own;
            ``weight_decay``, ``clip_value`` and ``clip_norm`` are added.
        step_count: Number of updates so far.
        gradient_modifier: See :class:`OptimizerOptions`, as the following ones.
        weight_decay: Decoupled decay of weights.
        clip_value: Largest absolute value of an element of a gradient.
        clip_norm: Largest 2-norm of all gradients together.
        accumulation_steps: Number of minibatches for one update.
        ema_decay: Decay of the parameters' average.
        ranks: The processes that train together, with an optimizer on several ranks; else this one alone.
    """

    hyperparameter_names: ClassVar[tuple[str, ...]] = COMMON_HYPERPARAMETERS

    #: Whether weights decay by the base class. A rule that has ``weight_decay`` in its formula says no.
    decays_weights: ClassVar[bool] = True

    ranks: Ranks = ALONE
    is_pure = False
    slots: tuple[str, ...] = ()
    elementwise = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Add the hyperparameters that every optimizer has."""
        super().__init_subclass__(**arguments)
        own = [name for name in cls.hyperparameter_names if name not in COMMON_HYPERPARAMETERS]
        cls.hyperparameter_names = (*own, *COMMON_HYPERPARAMETERS)

    def __init__(self, executor: GraphExecutor, loss: str = "loss", **options: Unpack[OptimizerOptions]) -> None:
        """Attach to an executor.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            **options: See :class:`OptimizerOptions`.

        Raises:
            TrainingError: The executor is none, the network has no such loss or no parameters, or an option is not
                accepted.
        """
        if not isinstance(executor, GraphExecutor):
            raise TrainingError(
                f"An optimizer needs an executor as its first argument; received {type(executor).__name__}. "
                f"Make one with deep500.frameworks.<framework>.from_model(network)."
            )
        known = [*executor.network.losses, *executor.network.outputs]
        if loss not in known:
            raise TrainingError(
                f"The network has no output named {loss!r} to optimize. Its outputs: {', '.join(known)}. "
                f"network.append_loss('SoftmaxCrossEntropyLoss') adds a loss."
            )
        if not executor.network.get_params():
            raise TrainingError("The network has no parameters, so there is nothing to train.")
        given = checked_options(type(self).__name__, options)
        self.executor = executor
        self.network = executor.network
        self.loss = loss
        self.step_count = 0
        self.gradient_modifier = three_arguments(given["gradient_modifier"])
        self.weight_decay = given["weight_decay"]
        self.clip_value = given["clip_value"]
        self.clip_norm = given["clip_norm"]
        self.accumulation_steps = given["accumulation_steps"]
        self.ema_decay = given["ema_decay"]
        grouped = [name for name in self.hyperparameter_names if name not in ("clip_value", "clip_norm")]
        self._groups = ParameterGroups(given["parameter_groups"], self.network.parameters, grouped)
        self._updates: ParameterUpdates | None = None
        self._is_averaged = False
        self.network.train()

    @abc.abstractmethod
    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch.

        Args:
            inputs: A tensor for every input of the network, the labels included.

        Returns:
            Outputs and losses by name, from before the update, as the framework's tensors.
        """

    def finish(self) -> None:
        """Bring to an end what steps have left under way; nothing here.

        A trainer calls it before each test and checkpoint, and in the end. Training may go on afterwards.
        """

    @property
    def updates(self) -> ParameterUpdates:
        """What takes the gradients through the options and changes the parameters.

        An optimizer that overrides :meth:`step` calls ``self.updates.apply()`` when the gradients are computed.
        """
        if self._is_averaged:
            raise TrainingError("The average stands in the parameters' place; train after the block of averaged().")
        for name in ("clip_value", "clip_norm"):  # they may have been changed since the last step
            limit = getattr(self, name)
            if limit is not None and not (type(limit) is float and 0.0 < limit < math.inf):
                setattr(self, name, positive(name, limit))
        if type(self.accumulation_steps) is not int or self.accumulation_steps < 1:
            check_count("accumulation_steps", self.accumulation_steps, least=1, error=TrainingError)
        if self._updates is None:
            self._updates = self.executor.parameter_updates(self)
        return self._updates

    def modified(self, grad: Any, param: Any, param_name: str) -> Any:
        """Return a gradient as the ``gradient_modifier`` changes it, or itself when there is none.

        Raises:
            TrainingError: The modifier returned no tensor like the gradient.
        """
        if self.gradient_modifier is None:
            return grad
        changed = self.gradient_modifier(grad, param, param_name)
        check_like(changed, grad, param_name)
        return changed

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the average of the parameters in their place for the time of a block, to evaluate with it.

        Statistics such as BatchNormalization's are no parameters and stay as they are.

        Raises:
            TrainingError: The optimizer was made without ``ema_decay``.
        """
        if self.ema_decay is None:
            raise TrainingError(
                f"{type(self).__name__} forms no average of the parameters. Make it with ema_decay, such as 0.999."
            )
        averages = self.updates.averages()
        kept = dict(zip(averages, self.network.fetch_tensors(list(averages))))
        self._is_averaged = True
        try:
            for name, value in averages.items():
                self.network.feed_tensor(name, value)
            yield
        finally:
            self._is_averaged = False
            for name, value in kept.items():
                self.network.feed_tensor(name, value)

    def __copy__(self) -> Self:
        """Return an optimizer with the same attributes, those that are objects shared."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled: parameters are the executor's, in the framework's memory.

        Raises:
            TrainingError: Always.
        """
        raise TrainingError(
            f"A {type(self).__name__} cannot be pickled or deeply copied, since it belongs to its executor. Pickle "
            f"optimizer.state(), and restore() it in an optimizer that was made for an executor there."
        )

    # What the updates ask for.

    def group_of(self, name: str) -> int:
        """Return the number of the group whose hyperparameters a parameter has."""
        return self._groups.of(name)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the numbers of a parameter's step 1, 2, ...: rates, corrections of a bias."""
        return {}

    def step_scalars(self, group: int, step: int) -> StepScalars:
        """Return the numbers of a step for a group of parameters, and how much of a parameter its decay keeps.

        Raises:
            TrainingError: One is not finite.
        """
        if group:
            with self._groups.applied(group, self):
                return self._step_scalars(step)
        return self._step_scalars(step)

    def _step_scalars(self, step: int) -> StepScalars:
        values: Mapping[str, Any] = {}
        try:
            values = self.scalars(step)
            values = {name: float(value) for name, value in values.items()}
            are_finite = all(map(math.isfinite, values.values()))
        except (TypeError, ValueError, OverflowError):
            if not values:  # it is computed from hyperparameters, of which one is no number any more
                self._check_hyperparameters()
                raise
            are_finite = False
        if not are_finite:  # only then, since naming them takes as long as the step of a small network
            values = {name: finite(f"{type(self).__name__}'s {name}", value) for name, value in values.items()}
        return StepScalars(values, self._kept_share())

    def _check_hyperparameters(self) -> None:
        """Check that every hyperparameter which is set is a finite number.

        Raises:
            TrainingError: One is not.
        """
        limits = ("clip_value", "clip_norm")
        for name in self.hyperparameter_names:
            value = getattr(self, name)
            if not isinstance(value, bool) and not (value is None and name in limits):
                finite(f"{type(self).__name__}'s {name}", value)

    def _kept_share(self) -> float:
        if not self.weight_decay or not self.decays_weights:
            return 1.0
        rate = getattr(self, "learning_rate", None)
        if rate is None:
            raise TrainingError(
                f"weight_decay of {type(self).__name__} is multiplied by its learning rate; it has no attribute "
                f"learning_rate."
            )
        decay = finite("weight_decay", self.weight_decay)
        return finite("1 - learning_rate * weight_decay", 1.0 - finite("learning_rate", rate) * decay)

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the next parameter and its next slots; see :class:`UpdateRuleOptimizer`."""
        raise NotImplementedError(f"{type(self).__name__} has no pure update")

    def next_value(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next parameter by a rule that keeps what it needs itself."""
        raise NotImplementedError(f"{type(self).__name__} has no update rule")

    # Checkpoints.

    def state(self) -> State:
        """Return a snapshot of hyperparameters, slots, accumulated gradients and averages; see :class:`Stateful`."""
        return {
            "optimizer": type(self).__name__,
            "step_count": self.step_count,
            "hyperparameters": {name: getattr(self, name) for name in self.hyperparameter_names},
            "updates": self.updates.state(),
            "attributes": self._attributes(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of another optimizer or network; nothing is changed then.
        """
        with checkpoint_errors("an optimizer"):
            self._restore(state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        received = state.get("optimizer")
        if received != type(self).__name__:
            raise CheckpointError(
                f"The checkpoint is of the optimizer {received!r}; this one is {type(self).__name__!r}. Go on with the "
                f"optimizer that was used."
            )
        lacking = [name for name in self.hyperparameter_names if name not in state["hyperparameters"]]
        if lacking:
            raise CheckpointError(f"The checkpoint's optimizer lacks the hyperparameters {', '.join(lacking)}.")
        attributes = self._checked_attributes(state["attributes"])
        step_count = int(state["step_count"])
        self.updates.restore(state["updates"])
        for name in self.hyperparameter_names:
            setattr(self, name, state["hyperparameters"][name])
        self.step_count = step_count
        self._set_attributes(attributes)

    def _attributes(self) -> dict[str, Any]:
        """Return what else the optimizer keeps, as it is saved."""
        return {}

    def _checked_attributes(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """Return what :meth:`_attributes` saved as it is to be set; ``CheckpointError`` where that cannot be."""
        return {name: restored_value(name, value, self.executor) for name, value in saved.items()}

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        """Set what :meth:`_checked_attributes` returned."""
        vars(self).update(values)
