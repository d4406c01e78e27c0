"""The contract of an optimizer, and the two forms in which one is written once for every framework."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.numpy_functions import NumpyFunctions
from deep500.networks.parameter_updates import ParameterUpdates
from deep500.networks.tensor_functions import TensorFunctions
from deep500.training._attribute_state import saved_value
from deep500.training._gradient_modifier import GradientModifier
from deep500.training._optimizer_base import COMMON_HYPERPARAMETERS, Optimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["GradientModifier", "Optimizer", "ThreeStepOptimizer", "UpdateRuleOptimizer"]


class ThreeStepOptimizer(Optimizer):
    """An optimizer written once: new input, preparation of each parameter, update rule for each parameter.

    The update rule is given, and returns, the framework's own tensors (NumPy arrays, ``torch.Tensor``, ``tf.Tensor``),
    in the layout that the network declares. Python's operators (``+ - * / **``) mean the same on all of them, so that
    one rule serves every framework.

    What it keeps in attributes (numbers, tensors, dictionaries, lists and tuples of them) is part of checkpoints.
    """

    def new_input(self) -> None:
        """Called once before each step."""

    def prepare_param(self, param_name: str) -> None:
        """Called for each parameter before the network runs.

        It may change the parameter: ``network.fetch_tensors([name])``, then ``network.feed_tensor(name, value)``.
        """

    @abc.abstractmethod
    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next value of a parameter.

        Args:
            grad: Gradient of the loss by the parameter.
            old_param: The parameter's value.
            param_name: The parameter's name.
        """

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        self.begin_step()
        return self.executor.training_step(inputs, self.loss, self.updates)

    def begin_step(self) -> None:
        """Do what comes before the network runs: the new input, and the preparation of each parameter.

        While gradients are accumulated it is done before the first minibatch alone.
        """
        if self.updates.pending:
            return
        self.new_input()
        if type(self).prepare_param is not ThreeStepOptimizer.prepare_param:  # names of parameters take their time
            for name in self.network.get_params():
                self.prepare_param(name)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the numbers of a step: for a rule that is not pure its own hyperparameters."""
        own = [name for name in self.hyperparameter_names if name not in COMMON_HYPERPARAMETERS]
        return {name: getattr(self, name) for name in own if isinstance(getattr(self, name, None), (int, float))}

    def next_value(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next parameter by the update rule, with the hyperparameters of the parameter's group."""
        group = self.group_of(param_name)
        with self._groups.applied(group, self) if group else contextlib.nullcontext():
            kept = self._kept_share()
            return self.update_rule(grad, old_param * kept if kept != 1.0 else old_param, param_name)

    def _rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        return self.update_rule(self.modified(grad, old_param, param_name), old_param, param_name)

    def _attributes(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name not in self._base_attributes()}
        return {name: saved_value(name, value, self.executor) for name, value in own.items()}

    def _base_attributes(self) -> set[str]:
        return {*_BASE_ATTRIBUTES, *self.hyperparameter_names}


class UpdateRuleOptimizer(ThreeStepOptimizer):
    r"""An optimizer that is nothing but an update rule, written in one of two forms.

    The first is :meth:`update_rule`, which may keep what it needs in attributes. The second is pure, and can therefore
    be traced and compiled: :attr:`slots` names what is kept for each parameter (zeros at first), :meth:`scalars` gives
    the numbers of a step, and :meth:`update` returns the next values. ``self.functions`` has what arithmetic has not.

    Attributes:
        slots: Names of the tensors that are kept for each parameter, shaped like it.
        elementwise: Whether the rule treats every element alike. It may then be given tensors of another shape, with
            the elements of several parameters or of a part of one; otherwise it is given whole parameters, as the
            network declares them.
        is_pure: Whether the rule is written in the second form.

    Example:
        >>> class Halving(UpdateRuleOptimizer):
        ...     def update_rule(self, grad, old_param, param_name):
        ...         return old_param - 0.5 * grad
        >>> class Averaging(UpdateRuleOptimizer):
        ...     slots = ("mean",)
        ...     elementwise = True
        ...     def update(self, gradient, parameter, slots, scalars):
        ...         mean = 0.9 * slots["mean"] + 0.1 * gradient
        ...         return parameter - 0.01 * mean, {"mean": mean}
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Tell which form the rule has; a pure one can be called as an update rule too."""
        super().__init_subclass__(**arguments)
        if "update" in vars(cls):
            cls.is_pure = True
            if "update_rule" not in vars(cls):
                setattr(cls, "update_rule", UpdateRuleOptimizer._rule_by_update)  # noqa: B010 - a method, to mypy
        elif "update_rule" in vars(cls):
            cls.is_pure = False

    def __init__(self, executor: GraphExecutor, loss: str = "loss", **options: Unpack[OptimizerOptions]) -> None:
        """Attach to an executor; see :class:`Optimizer`."""
        super().__init__(executor, loss, **options)
        self.functions: TensorFunctions = executor.tensor_functions
        #: Steps and slots by parameter, while the rule is called from outside.
        self._called: dict[str, tuple[int, dict[str, Any]]] = {}

    @property
    def updates(self) -> ParameterUpdates:
        """What changes the parameters, with the slots that calls of the rule from outside left."""
        updates = super().updates
        for name, (count, slots) in list(self._called.items()):
            if name in self.network.parameters:
                del self._called[name]
                updates.counts[name] = count
                updates.set_slot_values(name, {slot: _array(value, self.executor) for slot, value in slots.items()})
        return updates

    def _rule_by_update(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next value of a parameter by :meth:`update`, with the slots that are kept."""
        is_array = isinstance(old_param, np.ndarray)
        functions = NumpyFunctions() if is_array else self.executor.tensor_functions
        if param_name not in self._called:
            self._called[param_name] = self._taken_over(param_name, old_param, functions, is_array)
        count, slots = self._called[param_name]
        scalars, kept = self.step_scalars(self.group_of(param_name), count + 1)
        self.functions, before = functions, self.functions
        try:
            parameter = old_param * kept if kept != 1.0 else old_param
            value, following = self.update(grad, parameter, slots, scalars)
        finally:
            self.functions = before
        self._called[param_name] = (count + 1, dict(following))
        self.step_count = max(self.step_count, count + 1)
        return value

    def _taken_over(self, name: str, like: Any, functions: TensorFunctions, is_array: bool) -> tuple[int, Any]:
        """Return steps and slots of a parameter as the updates have them; zeros where they have none."""
        count, slots = 0, {}
        if self._updates is not None and name in self.network.parameters:
            count, slots = self._updates.counts.get(name, 0), self._updates.slot_values(name)
        if not slots:
            return count, {slot: functions.zeros_like(like) for slot in self.slots}
        if is_array:
            return count, slots
        descriptor = self.network.parameters[name]
        return count, {slot: self.executor.to_native(value, descriptor) for slot, value in slots.items()}


def _array(value: Any, executor: GraphExecutor) -> Any:
    return np.array(value if isinstance(value, np.ndarray) else executor.to_numpy(value))


#: What every optimizer has, which is saved otherwise or made anew.
_BASE_ATTRIBUTES = frozenset(
    {"executor", "network", "loss", "step_count", "gradient_modifier", "accumulation_steps", "ema_decay"}
    | {"_groups", "_updates", "_is_averaged", "functions", "_called"}
)
