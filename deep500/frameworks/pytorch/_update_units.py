"""What is updated together: one parameter, whole or in parts, or several small ones joined."""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from deep500.core.errors import TrainingError
from deep500.networks.parameter_updates import StepScalars, TrainingRule, checked_slots

__all__ = ["ApplyRule", "JoinedUnit", "SingleUnit", "Unit", "apply_rule"]

#: ``apply(gradient, parameter, slots)`` changes the parameter and its slots in place.
ApplyRule = Callable[[torch.Tensor, torch.Tensor, Mapping[str, torch.Tensor]], None]

#: Elements of a part for each thread: PyTorch gives no thread fewer, and some ten such tensors fit the L2 cache.
_PART = 1 << 15


class Unit(abc.ABC):
    """Parameters that are updated together.

    Attributes:
        names: Their names.
        cell: Number of the scalars that they are updated with.
        size: Number of their elements.
    """

    names: tuple[str, ...]
    cell: int
    size: int

    #: The slots, which are changed in place.
    slots: Mapping[str, torch.Tensor]

    @abc.abstractmethod
    def apply(self, apply: ApplyRule, gradients: Sequence[torch.Tensor]) -> None:
        """Update the parameters; see :data:`ApplyRule`."""

    @abc.abstractmethod
    def whole(self, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients and the parameters, each as one tensor; changes are taken over by :meth:`take`."""

    def flat(self, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what :meth:`whole` does, one-dimensional."""
        gradient, parameter = self.whole(gradients)
        return gradient.reshape(-1), parameter.view(-1)

    @functools.cached_property
    def flat_slots(self) -> list[torch.Tensor]:
        """The slots, one-dimensional; they share their memory."""
        return [slot.view(-1) for slot in self.slots.values()]

    def take(self, changed: torch.Tensor) -> None:
        """Take over the parameters that :meth:`whole` or :meth:`flat` returned, changed in place."""

    @abc.abstractmethod
    def is_in_place(self) -> bool:
        """Whether the parameters lie where they lay when the unit was made."""

    @abc.abstractmethod
    def tensors(self) -> list[torch.Tensor]:
        """Return the parameters and slots, which an update changes."""

    def values(self) -> list[torch.Tensor]:
        """Return copies of what an update changes."""
        return [tensor.clone() for tensor in self.tensors()]

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Give parameters and slots their values back after a block."""
        before = self.values()
        try:
            yield
        finally:
            torch._foreach_copy_(self.tensors(), before)

    def check(self, rule: TrainingRule, gradients: Sequence[torch.Tensor], scalars: StepScalars) -> None:
        """Check what a rule returns, which is not done again at each step.

        Raises:
            TrainingError: It returns other slots, or something of another shape.
        """
        gradient, parameter = self.whole(gradients)
        value, following = rule.update(gradient, parameter, self.slots, scalars.values)
        if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
            received = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise TrainingError(
                f"The update rule returned {received} for parameter {self.names[0]!r}; "
                f"accepted is a tensor of shape {tuple(parameter.shape)}."
            )
        checked_slots(rule, following, self.slots, self.names[0])


class SingleUnit(Unit):
    """One parameter."""

    def __init__(self, name: str, cell: int, parameter: torch.Tensor, slots: Mapping[str, torch.Tensor]) -> None:
        """Cut an elementwise parameter in parts that stay in the cache.

        Args:
            name: Name of the parameter.
            cell: Number of its scalars.
            parameter: The parameter.
            slots: Its slots, which are changed in place.
        """
        self.names, self.cell, self.size = (name,), cell, parameter.numel()
        self.parameter, self.slots = parameter.detach(), slots
        self._owner, self._place = parameter, parameter.data_ptr()
        self._part = _PART * max(1, torch.get_num_threads())
        self._parts: list[tuple[torch.Tensor, dict[str, torch.Tensor]]] = []
        contiguous = all(tensor.is_contiguous() for tensor in (parameter, *slots.values()))
        if contiguous and self.size > self._part and parameter.device.type == "cpu":
            columns = {slot: tensor.view(-1).split(self._part) for slot, tensor in slots.items()}
            pieces = self.parameter.view(-1).split(self._part)
            self._parts = [(piece, {s: columns[s][i] for s in columns}) for i, piece in enumerate(pieces)]

    def whole(self, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return gradient and parameter."""
        return gradients[0], self.parameter

    def flat(self, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return gradient and parameter, one-dimensional."""
        return gradients[0].reshape(-1), self._flat

    @functools.cached_property
    def _flat(self) -> torch.Tensor:
        return self.parameter.view(-1)

    def apply(self, apply: ApplyRule, gradients: Sequence[torch.Tensor]) -> None:
        """Update the parameter; see :meth:`Unit.apply`."""
        if not self._parts:
            apply(gradients[0], self.parameter, self.slots)
            return
        for (piece, slots), gradient in zip(self._parts, gradients[0].reshape(-1).split(self._part), strict=True):
            apply(gradient, piece, slots)

    def tensors(self) -> list[torch.Tensor]:
        """Return the parameter and its slots."""
        return [self.parameter, *self.slots.values()]

    def is_in_place(self) -> bool:
        """Whether the parameter lies where it lay."""
        return self._owner.data_ptr() == self._place


class JoinedUnit(Unit):
    """Several small parameters of one dtype, one after another in one tensor."""

    def __init__(
        self,
        names: tuple[str, ...],
        cell: int,
        parameters: Sequence[torch.Tensor],
        slots: Sequence[Mapping[str, torch.Tensor]],
    ) -> None:
        """Join the slots; parameters and gradients are joined at each step.

        Args:
            names: Names of the parameters.
            cell: Number of their scalars.
            parameters: The parameters.
            slots: The slots of each.
        """
        self.names, self.cell = names, cell
        self.parameters = [parameter.detach() for parameter in parameters]
        self.size = sum(parameter.numel() for parameter in parameters)
        self.slots = {slot: _joined([entry[slot] for entry in slots]) for slot in slots[0]}
        self._owners, self._places = list(parameters), [parameter.data_ptr() for parameter in parameters]

    def slot_views(self) -> list[dict[str, torch.Tensor]]:
        """Return the slots of each parameter, which share the memory of the joined ones."""
        columns = {slot: _taken_apart(joined, self.parameters) for slot, joined in self.slots.items()}
        return [{slot: columns[slot][i] for slot in columns} for i in range(len(self.names))]

    def whole(self, gradients: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return gradients and parameters, joined."""
        return _joined(gradients), _joined(self.parameters)

    def take(self, changed: torch.Tensor) -> None:
        """Take over the joined parameters."""
        torch._foreach_copy_(self.parameters, _taken_apart(changed, self.parameters))

    def apply(self, apply: ApplyRule, gradients: Sequence[torch.Tensor]) -> None:
        """Update the parameters; see :meth:`Unit.apply`."""
        gradient, parameter = self.whole(gradients)
        apply(gradient, parameter, self.slots)
        self.take(parameter)

    def tensors(self) -> list[torch.Tensor]:
        """Return the parameters and the joined slots."""
        return [*self.parameters, *self.slots.values()]

    def is_in_place(self) -> bool:
        """Whether the parameters lie where they lay."""
        return [parameter.data_ptr() for parameter in self._owners] == self._places


def apply_rule(
    rule: TrainingRule,
    scalars: Mapping[str, Any],
    kept: Any,
    gradient: torch.Tensor,
    parameter: torch.Tensor,
    slots: Mapping[str, torch.Tensor],
) -> None:
    """Change a parameter and its slots in place as a rule says; ``kept`` is ``None`` where weights do not decay."""
    value, following = rule.update(gradient, parameter if kept is None else parameter * kept, slots, scalars)
    parameter.copy_(value)
    for slot, tensor in following.items():
        slots[slot].copy_(tensor)


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    joined: torch.Tensor = torch._utils._flatten_dense_tensors(tensors)
    return joined


def _taken_apart(joined: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(torch._utils._unflatten_dense_tensors(joined, like))
