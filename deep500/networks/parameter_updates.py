"""What happens to parameters when their gradients are known: the part of a training step that all optimizers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import CheckpointError, TrainingError
from deep500.core.tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from deep500.networks.graph_executor import GraphExecutor

__all__ = ["ParameterUpdates", "StepScalars", "TrainingRule", "checked_slots"]


class StepScalars(NamedTuple):
    """The numbers of one step of a rule.

    Attributes:
        values: What ``rule.update`` is given.
        kept: What a parameter is multiplied by before: less than 1 where weights decay.
    """

    values: Mapping[str, float]
    kept: float


class TrainingRule(Protocol):
    """What an optimizer tells those that change the parameters for it.

    Attributes:
        is_pure: Whether the rule is :meth:`update`; otherwise it is :meth:`next_value`.
        slots: Names of the tensors that a pure rule keeps for each parameter.
        elementwise: Whether a pure rule treats every element alike.
        gradient_modifier: Changes each gradient; ``None`` where there is nothing to change.
        clip_value: Largest absolute value of an element of a gradient.
        clip_norm: Largest 2-norm of all gradients together.
        accumulation_steps: Number of minibatches of an update.
        ema_decay: Decay of the parameters' average.
        step_count: Number of updates so far; it is counted up by those that make them.
    """

    is_pure: bool
    slots: tuple[str, ...]
    elementwise: bool
    gradient_modifier: Callable[..., Any] | None
    clip_value: float | None
    clip_norm: float | None
    accumulation_steps: int
    ema_decay: float | None
    step_count: int

    def group_of(self, name: str) -> int:
        """Return the number of the group whose hyperparameters a parameter has."""

    def step_scalars(self, group: int, step: int) -> StepScalars:
        """Return the numbers of a parameter's step 1, 2, ..."""

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the next parameter and its next slots; pure."""

    def next_value(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the next parameter by a rule that keeps what it needs itself."""

    def modified(self, grad: Any, param: Any, param_name: str) -> Any:
        """Return a gradient as the modifier changes it."""


class ParameterUpdates:
    """Updates of the parameters of an executor by a rule, on the framework's tensors, one parameter after another.

    An adapter derives from it to do the same faster. The gradient goes through these steps: mean over the accumulated
    minibatches, ``gradient_modifier``, clipping by value, clipping by norm. Then weights decay, then the rule is
    applied, then the average is formed.

    Attributes:
        executor: Holds parameters and gradients.
        rule: What is applied.
        pending: Number of minibatches whose gradients wait for an update.
        counts: Number of updates of each parameter.
    """

    def __init__(self, executor: GraphExecutor, rule: TrainingRule) -> None:
        """Start with slots of zeros.

        Args:
            executor: Holds parameters and gradients.
            rule: What is applied.
        """
        self.executor = executor
        self.rule = rule
        self.pending = 0
        self.counts: dict[str, int] = {}
        self._descriptors = executor.network.parameters
        self._names = tuple(self._descriptors)
        self._slots: dict[str, dict[str, Any]] = {}
        self._sums: dict[str, Any] = {}
        self._averages: dict[str, Any] = {}
        self._ready: dict[str, Any] = {}
        self._scalars: dict[tuple[int, int], StepScalars] = {}

    def apply(self) -> None:
        """Take the gradients of a minibatch, and update the parameters unless more minibatches are awaited."""
        gradients = self.gradients()
        if gradients is None:
            return
        self.start_average()
        self._ready, self._scalars = gradients, {}
        try:
            self.executor.update_parameters(self._next_value)
        finally:
            self._ready = {}
        self.finish()

    def gradients(self) -> dict[str, Any] | None:
        """Return the gradients to use as they are held, by parameter; ``None`` while more minibatches are awaited."""
        found = {name: self.executor.gradient_tensor(name) for name in self._names}
        gradients = {name: gradient for name, gradient in found.items() if gradient is not None}
        count = self.rule.accumulation_steps
        if count > 1:
            self._accumulate(gradients)
            if self.pending < count:
                return None
            gradients = {name: total / count for name, total in self._sums.items()}
            self.pending = 0
        return self.shaped(gradients, self.executor.stored_tensor, self.rule.clip_value, self.rule.clip_norm)

    def shaped(
        self, gradients: Mapping[str, Any], parameter: Callable[[str], Any], clip_value: Any, clip_norm: Any
    ) -> dict[str, Any]:
        """Return gradients after the modifier and the clipping.

        Args:
            gradients: The gradients as they are held.
            parameter: Returns a parameter as it is held.
            clip_value: Largest absolute value, a number or a float64 scalar tensor.
            clip_norm: Largest norm, likewise.
        """
        functions = self.executor.tensor_functions
        result = dict(gradients)
        if self.rule.gradient_modifier is not None:
            result = {name: self._modified(name, gradient, parameter(name)) for name, gradient in result.items()}
        if clip_value is not None:
            for name, gradient in result.items():
                limit = functions.cast_like(clip_value, gradient)
                result[name] = functions.maximum(functions.minimum(gradient, limit), -limit)
        if clip_norm is not None and result:
            # At most the limit, it is limit / limit, which is 1: no branch is needed, and no value is waited for.
            scale = clip_norm / functions.maximum(functions.global_norm(list(result.values())), clip_norm)
            result = {name: gradient * functions.cast_like(scale, gradient) for name, gradient in result.items()}
        return result

    def start_average(self) -> None:
        """Begin the average with the parameters as they are, if there is to be one and it has not begun."""
        if self.rule.ema_decay is not None and not self._averages:
            self._averages = {name: self._native(name, self.executor.fetch(name)) for name in self._names}

    def finish(self) -> None:
        """Count the update, and take the parameters into the average."""
        self.rule.step_count += 1
        if self.rule.ema_decay is not None:
            decay = float(self.rule.ema_decay)
            for name, average in self._averages.items():
                self._averages[name] = decay * average + (1.0 - decay) * self.executor.stored_tensor(name)

    def averages(self) -> dict[str, NDArray[Any]]:
        """Return the parameters' averages; the parameters themselves before the first update."""
        if not self._averages:
            return {name: self.executor.fetch(name) for name in self._names}
        return {name: self._array(name, tensor) for name, tensor in self._averages.items()}

    def slot_values(self, name: str) -> dict[str, NDArray[Any]]:
        """Return copies of the slots of a parameter, in the declared layout; none before its first update."""
        return {slot: self._slot_array(name, tensor) for slot, tensor in self._slots.get(name, {}).items()}

    def set_slot_values(self, name: str, values: Mapping[str, NDArray[Any]]) -> None:
        """Replace the slots of a parameter; no values begin them anew."""
        self._slots.pop(name, None)
        if values:
            self._slots[name] = {slot: self._slot_native(name, value) for slot, value in values.items()}

    def state(self) -> dict[str, Any]:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        slots = {name: self.slot_values(name) for name in self._names}
        return {
            "pending": self.pending,
            "counts": dict(self.counts),
            "slots": {name: values for name, values in slots.items() if values},
            "sums": {name: self._array(name, tensor) for name, tensor in self._sums.items()} if self.pending else {},
            "averages": self.averages() if self._averages else {},
        }

    def check(self, state: Mapping[str, Any]) -> None:
        """Check that a snapshot fits this network and rule.

        Raises:
            CheckpointError: It does not.
        """
        _check_keys("an optimizer", state, ("pending", "counts", "slots", "sums", "averages"))
        for name, values in state["slots"].items():
            _check_keys(f"the slots of {name!r}", values, self.rule.slots)
            for slot, value in values.items():
                self._check_array(f"slot {slot!r} of", name, value)
        for kind in ("sums", "averages"):
            for name, value in state[kind].items():
                self._check_array(f"{kind}:", name, value)
        for name in state["counts"]:
            self._check_name(name)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of another network or rule; nothing is changed then.
        """
        self.check(state)
        self.pending = int(state["pending"])
        self.counts = {name: int(count) for name, count in state["counts"].items()}
        for name in self._names:
            self.set_slot_values(name, state["slots"].get(name, {}))
        self._sums = {name: self._native(name, value) for name, value in state["sums"].items()}
        self._averages = {name: self._native(name, value) for name, value in state["averages"].items()}

    def _accumulate(self, gradients: Mapping[str, Any]) -> None:
        if not self.pending:
            self._sums.clear()
        self.pending += 1
        for name, gradient in gradients.items():
            # NumPy arrays may be used again by the executor; the frameworks make new tensors in every run.
            first = np.array(gradient) if isinstance(gradient, np.ndarray) else gradient
            self._sums[name] = self._sums[name] + gradient if name in self._sums else first

    def _modified(self, name: str, gradient: Any, parameter: Any) -> Any:
        declared = self.executor.declared_layout
        modified = self.rule.modified(declared(name, gradient), declared(name, parameter), name)
        return self.executor.held_layout(name, modified)

    def _next_value(self, gradient: Any, parameter: Any, name: str) -> Any:
        gradient, rule = self._ready.get(name, gradient), self.rule
        declared, held = self.executor.declared_layout, self.executor.held_layout
        if not rule.is_pure:
            return held(name, rule.next_value(declared(name, gradient), declared(name, parameter), name))
        self.counts[name] = count = self.counts.get(name, 0) + 1
        key = (rule.group_of(name), count)
        if key not in self._scalars:
            self._scalars[key] = rule.step_scalars(*key)
        scalars, kept = self._scalars[key]
        if not rule.elementwise:
            gradient, parameter = declared(name, gradient), declared(name, parameter)
        slots = self._slots.get(name)
        if slots is None:
            slots = {slot: self.executor.tensor_functions.zeros_like(parameter) for slot in rule.slots}
        if kept != 1.0:
            parameter = parameter * kept
        value, following = rule.update(gradient, parameter, slots, scalars)
        self._keep_slots(name, slots, checked_slots(rule, following, slots, name))
        return value if rule.elementwise else held(name, value)

    def _keep_slots(self, name: str, slots: Mapping[str, Any], following: Mapping[str, Any]) -> None:
        """Keep the next slots of a parameter in the place of those that it had."""
        self._slots[name] = {slot: _own(tensor, slots[slot]) for slot, tensor in following.items()}

    def _array(self, name: str, tensor: Any) -> NDArray[Any]:
        """Return a copy of a tensor like a parameter, in the layout that the network declares."""
        return np.array(self.executor.to_numpy(self.executor.declared_layout(name, tensor)))

    def _native(self, name: str, value: NDArray[Any]) -> Any:
        """Return a tensor like a parameter as it is held, of memory of its own."""
        native = self.executor.to_native(np.array(value), TensorDescriptor(value.dtype, value.shape))
        return self.executor.held_layout(name, native)

    def _slot_array(self, name: str, tensor: Any) -> NDArray[Any]:
        """Return a copy of a slot: rules for whole parameters keep theirs in the declared layout."""
        return self._array(name, tensor) if self.rule.elementwise else np.array(self.executor.to_numpy(tensor))

    def _slot_native(self, name: str, value: NDArray[Any]) -> Any:
        """Return a slot as it is kept, of memory of its own."""
        native = self.executor.to_native(np.array(value), TensorDescriptor(value.dtype, value.shape))
        return self.executor.held_layout(name, native) if self.rule.elementwise else native

    def _check_name(self, name: str) -> None:
        if name not in self._names:
            raise CheckpointError(
                f"The checkpoint's optimizer has the parameter {name!r}; the network has: {', '.join(self._names)}. "
                f"Restore it with the network that was trained."
            )

    def _check_array(self, what: str, name: str, value: Any) -> None:
        self._check_name(name)
        parameter = self._descriptors[name]
        expected = (parameter.dtype, tuple(parameter.shape or ()))
        received = (getattr(getattr(value, "dtype", None), "name", "no dtype"), np.shape(value))
        if received != expected:
            raise CheckpointError(
                f"The checkpoint has {what} {name!r} as {received[0]}{list(received[1])}; the network's parameter is "
                f"{expected[0]}{list(expected[1])}. Restore it with the network that was trained."
            )


def checked_slots(rule: TrainingRule, following: Any, slots: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the next slots of a rule, checked.

    Raises:
        TrainingError: There are others than the rule says, or they have another shape than the parameter.
    """
    if not isinstance(following, Mapping) or set(following) != set(rule.slots):
        received = ", ".join(following) if isinstance(following, Mapping) else type(following).__name__
        raise TrainingError(
            f"{type(rule).__name__}.update returned the slots ({received}) for parameter {name!r}; accepted is a "
            f"dictionary with: {', '.join(rule.slots) or 'nothing'}."
        )
    for slot, tensor in following.items():
        if tuple(np.shape(tensor)) != tuple(np.shape(slots[slot])):
            raise TrainingError(
                f"{type(rule).__name__}.update returned slot {slot!r} of shape {tuple(np.shape(tensor))} for parameter "
                f"{name!r}; accepted is {tuple(np.shape(slots[slot]))}."
            )
    return following


def _own(tensor: Any, like: Any) -> Any:
    """Return a tensor that is kept; NumPy's are copied, since their memory may be used again."""
    return np.array(tensor, dtype=like.dtype) if isinstance(like, np.ndarray) else tensor


def _check_keys(what: str, found: Any, expected: Sequence[str]) -> None:
    if not isinstance(found, Mapping) or set(found) != set(expected):
        received = ", ".join(map(str, found)) if isinstance(found, Mapping) else type(found).__name__
        raise CheckpointError(
            f"The checkpoint has, for {what}: {received or 'nothing'}; expected is {', '.join(expected) or 'nothing'}. "
            f"It is of another optimizer."
        )
