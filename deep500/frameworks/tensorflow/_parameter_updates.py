"""Updates of parameters as part of the graph of a training step."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import TrainingError
from deep500.frameworks.tensorflow._applied_step import AppliedStep, fed_gradients
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.parameter_updates import ParameterUpdates, TrainingRule, checked_slots
from deep500.networks.pure_functions import Readings, readings_of

if TYPE_CHECKING:
    from deep500.frameworks.tensorflow.executor import TensorFlowExecutor

__all__ = ["TensorFlowUpdates", "WholeUpdate", "checked_value"]

#: Modules whose functions mean the same when they are traced.
_TRACED_MODULES = ("tensorflow", "keras", "math", "deep500")


@runtime_checkable
class WholeUpdate(Protocol):
    """A rule that is traced for all parameters at once, such as an optimizer of Keras."""

    def apply_traced(self, gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable]) -> None:
        """Assign the next values of the parameters; it is traced."""


class TensorFlowUpdates(ParameterUpdates):
    """Updates parameters inside the graph that computes their gradients, where the rule can be traced.

    That is so for pure rules, and for a user's rule or gradient modifier whose code shows that it depends on its
    arguments, its hyperparameters and constants alone. Any other is called on tensors after the graph has run.

    Slots, sums and averages are ``tf.Variable``s. All numbers of a step are one argument of the graph.
    """

    def __init__(self, own: TensorFlowExecutor, source: GraphExecutor, rule: TrainingRule) -> None:
        """Start with slots of zeros.

        Args:
            own: Holds the parameters.
            source: Has the gradients: the same executor, or one that wraps it.
            rule: What is applied.
        """
        super().__init__(source, rule)
        self.own = own
        self._steps: dict[Any, TracedStep] = {}
        self._applied: dict[Any, AppliedStep] = {}
        self._readings: Readings | None = None
        self._is_traced = source is own
        self._modifier: Any = None
        self.is_whole = isinstance(rule, WholeUpdate)

    def train(self, inputs: Mapping[str, Any], loss: str) -> dict[str, Any]:
        """Run the network, compute the gradients, and update."""
        if not self._traces():
            outputs = self.own.inference_and_backprop(inputs, loss)
            self.apply()
            return outputs
        step = self._traced_step()
        self._make_slots(self._names if step.stage == "update" else ())
        outputs = self.own.train(inputs, loss, step)
        if step.error is not None:
            self._is_traced = False
            self.apply()
            return outputs
        self._note(step, step.active)
        return outputs

    def apply(self) -> None:
        """Take the gradients of a minibatch, and update; see :meth:`ParameterUpdates.apply`."""
        if not self._traces():
            super().apply()
            return
        step, gradients = self._traced_step(), fed_gradients(self.executor, self.own, self._names)
        key = (step, gradients.key)
        if key not in self._applied:
            self._make_slots(gradients.names if step.stage == "update" else ())
            variables = {name: self.own.stored_tensor(name) for name in gradients.names}
            try:
                self._applied[key] = AppliedStep(step, gradients, variables, self.own.tensorflow_device)
            except Exception as error:
                if not step.refuse(error):
                    raise
                self._is_traced = False
                super().apply()
                return
        self._applied[key](gradients)
        self._note(step, gradients.names)

    def _note(self, step: TracedStep, names: Sequence[str]) -> None:
        """Take note that a step was made with the gradients by some parameters."""
        if step.stage != "update":
            self.pending += 1
            return
        self.pending = 0
        self.rule.step_count += 1
        for name in names:
            self.counts[name] = self.counts.get(name, 0) + 1

    def _traces(self) -> bool:
        """Return whether the step is one graph: rule and modifier can be traced, and read what they read before."""
        if self.is_whole:
            return True
        if self._is_traced and (self._readings is None or self._modifier is not self.rule.gradient_modifier):
            self._modifier = self.rule.gradient_modifier
            found = [self._read(function) for function in self._foreign()]
            self._is_traced = None not in found
            self._readings = Readings([entry for one in found if one is not None for entry in one.values])
        elif self._is_traced and self._readings is not None:
            self._is_traced = self._readings.hold()
        return self._is_traced

    def _foreign(self) -> list[Callable[..., Any]]:
        """Return the functions of a user that would be traced."""
        modifier = [] if self._modifier is None else [self._modifier]
        return modifier if self.rule.is_pure else [*modifier, getattr(self.rule, "update_rule", self.rule.next_value)]

    def _read(self, function: Callable[..., Any]) -> Readings | None:
        variable = self.rule.step_scalars(0, 1).values
        return readings_of(function, _TRACED_MODULES, variable=variable, allowed=[self.executor.tensor_functions])

    def _traced_step(self) -> TracedStep:
        """Return the step to make, with the numbers that it is made with."""
        rule = self.rule
        stage = "update"
        if rule.accumulation_steps > 1 and self.pending + 1 < rule.accumulation_steps:
            stage = "add" if self.pending else "begin"
        if rule.accumulation_steps > 1:
            self._make_sums()
        if stage != "update":
            return self._steps.setdefault(stage, TracedStep(self, stage, (), (), (False, False, False, False)))
        self.start_average()
        cells: dict[tuple[int, int], int] = {}
        counts, group_of = self.counts, rule.group_of
        if self.is_whole:  # it counts its steps itself
            cells, cell_of = self._group_cells
        else:
            cell_of = tuple([cells.setdefault((group_of(n), counts.get(n, 0) + 1), len(cells)) for n in self._names])
        scalars = [rule.step_scalars(group, count) for group, count in cells]
        limits = (rule.clip_value, rule.clip_norm, rule.ema_decay)
        flags = (any(entry.kept != 1.0 for entry in scalars), *(limit is not None for limit in limits))
        names = tuple([tuple(entry.values) for entry in scalars])
        key = (cell_of, names, flags, self._modifier, rule.accumulation_steps)
        if key not in self._steps:
            self._steps[key] = TracedStep(self, stage, cell_of, names, flags)
        step = self._steps[key]
        numbers = [number for entry in scalars for number in (entry.kept, *entry.values.values())]
        shared = [0.0 if limit is None else float(limit) for limit in limits]
        step.values = np.array([*numbers, *shared, 1.0 - shared[2]], np.float64)
        return step

    @functools.cached_property
    def _group_cells(self) -> tuple[dict[tuple[int, int], int], tuple[int, ...]]:
        """The groups of parameters as cells, and the number of each parameter's."""
        cells: dict[tuple[int, int], int] = {}
        return cells, tuple([cells.setdefault((self.rule.group_of(n), 1), len(cells)) for n in self._names])

    def _variable(self, value: Any) -> tf.Variable:
        with tf.device(self.own.tensorflow_device):
            return tf.Variable(value, trainable=False)

    def _make_sums(self) -> None:
        for name in self._names:
            if name not in self._sums:
                self._sums[name] = self._variable(tf.zeros_like(self.own.stored_tensor(name)))

    def _make_slots(self, names: Iterable[str]) -> None:
        """Make the slots of parameters that are updated: those that other ranks update (Zero1) take no memory."""
        for name in names:
            if self.rule.slots and name not in self._slots:
                parameter = self.own.stored_tensor(name)
                like = parameter if self.rule.elementwise else self.own.declared_layout(name, parameter)
                self._slots[name] = {slot: self._variable(tf.zeros_like(like)) for slot in self.rule.slots}

    # What the base class keeps as tensors.

    def start_average(self) -> None:
        """Begin the average; see :meth:`ParameterUpdates.start_average`."""
        if self.rule.ema_decay is not None and not self._averages:
            self._averages = {name: self._variable(self.own.stored_tensor(name)) for name in self._names}

    def finish(self) -> None:
        """Count the update, and take the parameters into the average."""
        self.rule.step_count += 1
        if self.rule.ema_decay is not None:
            decay = float(self.rule.ema_decay)
            for name, average in self._averages.items():
                average.assign(decay * average + (1.0 - decay) * self.own.stored_tensor(name))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot; see :meth:`ParameterUpdates.restore`."""
        super().restore(state)
        self._sums = {name: self._variable(value) for name, value in self._sums.items()}
        self._averages = {name: self._variable(value) for name, value in self._averages.items()}
        self._steps.clear()  # they assign the variables from before
        self._applied.clear()

    def set_slot_values(self, name: str, values: Mapping[str, NDArray[Any]]) -> None:
        """Replace the slots of a parameter; no values begin them anew."""
        kept = self._slots.get(name)
        if kept is None:
            super().set_slot_values(name, values)
            if values:
                self._slots[name] = {slot: self._variable(tensor) for slot, tensor in self._slots[name].items()}
            return
        for slot, variable in kept.items():  # graphs may hold the variables
            variable.assign(self._slot_native(name, values[slot]) if values else tf.zeros_like(variable))

    def _accumulate(self, gradients: Mapping[str, Any]) -> None:
        self._make_sums()
        self.pending += 1
        for name, total in self._sums.items():
            gradient = gradients.get(name)
            if self.pending == 1:
                total.assign(tf.zeros_like(total) if gradient is None else gradient)
            elif gradient is not None:
                total.assign_add(gradient)

    def _keep_slots(self, name: str, slots: Mapping[str, Any], following: Mapping[str, Any]) -> None:
        if name not in self._slots:
            self._slots[name] = {slot: self._variable(tensor) for slot, tensor in following.items()}
            return
        for slot, tensor in following.items():
            self._slots[name][slot].assign(tensor)


class TracedStep:
    """What is traced after the gradients of a minibatch: the start of a sum, an addition to it, or an update.

    Attributes:
        stage: ``"begin"``, ``"add"`` or ``"update"``.
        active: Names of the parameters that have a gradient, known when it was traced.
        values: The numbers of the next call.
        error: Why a user's rule cannot be traced; ``None`` when it can, or was not tried.
    """

    def __init__(
        self,
        updates: TensorFlowUpdates,
        stage: str,
        cell_of: Sequence[int],
        names: Sequence[Sequence[str]],
        flags: Sequence[bool],
    ) -> None:
        """Keep what the trace depends on.

        Args:
            updates: Whose step it is.
            stage: What is done.
            cell_of: For each parameter the number of the cell with the same numbers.
            names: For each cell the names of its numbers.
            flags: Whether weights decay, elements are clipped, the norm is clipped, an average is formed.
        """
        self.stage, self.flags = stage, flags
        self.active: tuple[str, ...] = ()
        self.values: NDArray[np.float64] = np.zeros(0)
        self.error: Exception | None = None
        self._updates = updates
        self._cells = dict(zip(updates._names, cell_of, strict=False))
        self._scalar_names = names
        #: Returns the numbers of a call; ``None`` for a rule that has its own and acts without options.
        self.numbers: Callable[[], NDArray[np.float64]] | None = None
        if not (updates.is_whole and stage == "update" and not any(flags)):
            self.numbers = lambda: self.values

    def refuse(self, error: Exception) -> bool:
        """Take note that the trace failed; return whether the rule may be called outside of the graph instead."""
        rule = self._updates.rule
        is_tentative = not self._updates.is_whole and not (rule.is_pure and rule.gradient_modifier is None)
        self.error = error if is_tentative else None
        return is_tentative

    def __call__(
        self, gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable], numbers: Any = ()
    ) -> None:
        """Trace the step.

        Args:
            gradients: The gradients by name.
            parameters: The variables by name.
            numbers: What :attr:`numbers` returns, as a tensor.
        """
        updates = self._updates
        self.active = tuple(gradients)
        if self.stage != "update":
            for name, total in updates._sums.items():
                gradient = gradients.get(name)
                if self.stage == "begin":
                    total.assign(tf.zeros_like(total) if gradient is None else gradient)
                elif gradient is not None:
                    total.assign_add(gradient)
            return
        count = updates.rule.accumulation_steps
        if count > 1:
            gradients = {name: (updates._sums[name] + gradient) / count for name, gradient in gradients.items()}
        if self.numbers is None:
            numbers = tf.constant(self.values)  # of which none is used
        *scalars, clip_value, clip_norm, decay, rest = tf.unstack(numbers)
        _, clips_value, clips_norm, averages = self.flags
        gradients = updates.shaped(
            gradients,
            lambda name: tf.convert_to_tensor(parameters[name]),
            clip_value if clips_value else None,
            clip_norm if clips_norm else None,
        )
        self._apply(gradients, parameters, self._by_cell(scalars))
        if averages:
            for name, average in updates._averages.items():
                value = updates.own.stored_tensor(name)
                average.assign(tf.cast(decay, value.dtype) * average + tf.cast(rest, value.dtype) * value)

    def _by_cell(self, scalars: list[tf.Tensor]) -> list[tuple[tf.Tensor, dict[str, tf.Tensor]]]:
        """Return for each cell the share of a parameter that is kept, and the rule's numbers."""
        remaining = iter(scalars)
        return [(next(remaining), {name: next(remaining) for name in names}) for names in self._scalar_names]

    def _apply(
        self,
        gradients: Mapping[str, tf.Tensor],
        parameters: Mapping[str, tf.Variable],
        cells: list[tuple[tf.Tensor, dict[str, tf.Tensor]]],
    ) -> None:
        updates, rule = self._updates, self._updates.rule
        decays = self.flags[0]
        if isinstance(rule, WholeUpdate):
            for name, variable in parameters.items():
                if decays:
                    variable.assign(variable * tf.cast(cells[self._cells[name]][0], variable.dtype))
            rule.apply_traced(gradients, parameters)
            return
        for name, gradient in gradients.items():
            variable = parameters[name]
            kept, numbers = cells[self._cells[name]]
            parameter = tf.convert_to_tensor(variable)
            if decays:
                parameter = parameter * tf.cast(kept, variable.dtype)
            scalars = {key: tf.cast(number, variable.dtype) for key, number in numbers.items()}
            if rule.is_pure:
                value = self._pure(name, gradient, parameter, scalars)
            else:
                declared = updates.own.declared_layout
                value = _with_attributes(rule, scalars).update_rule(
                    declared(name, gradient), declared(name, parameter), name
                )
                value = updates.own.held_layout(name, value)
            variable.assign(checked_value(value, variable, name))

    def _pure(self, name: str, gradient: Any, parameter: Any, scalars: Mapping[str, tf.Tensor]) -> Any:
        updates, rule = self._updates, self._updates.rule
        if not rule.elementwise:
            gradient = updates.own.declared_layout(name, gradient)
            parameter = updates.own.declared_layout(name, parameter)
        slots = updates._slots.get(name, {})
        read = {slot: tf.convert_to_tensor(variable) for slot, variable in slots.items()}
        value, following = rule.update(gradient, parameter, read, scalars)
        for slot, tensor in checked_slots(rule, following, read, name).items():
            slots[slot].assign(tensor)
        return value if rule.elementwise else updates.own.held_layout(name, value)


def _with_attributes(rule: Any, values: Mapping[str, Any]) -> Any:
    """Return a user's optimizer as it is, but with tensors as its hyperparameters."""
    changed = copy.copy(rule)
    for name, value in values.items():
        setattr(changed, name, value)
    return changed


def checked_value(value: Any, variable: tf.Variable, name: str) -> tf.Tensor:
    """Return what an update rule returned as a tensor that can be assigned.

    Raises:
        TrainingError: It is none, or of another dtype or shape.
    """
    expected = f"a tensor {variable.dtype.name}{variable.shape.as_list()}"
    if value is None:
        raise TrainingError(f"The update rule returned nothing for parameter {name!r}; it must return {expected}.")
    try:
        tensor = tf.convert_to_tensor(value, variable.dtype)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise TrainingError(f"The update rule must return {expected} for parameter {name!r}: {error}") from error
    if tensor.shape != variable.shape:
        raise TrainingError(
            f"The update rule returned shape {tensor.shape.as_list()} for parameter {name!r}; "
            f"it must return {expected}."
        )
    return tensor
