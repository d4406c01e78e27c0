"""Groups of parameters that have hyperparameters of their own."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from deep500.core.errors import TrainingError, near_miss
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.core.texts import shown
from deep500.training.hyperparameters import non_negative

__all__ = ["Multiplier", "ParameterGroup", "ParameterGroups"]

#: Says which parameters are meant: a pattern of names such as ``"*.bias"``, or ``predicate(name, descriptor)``.
Selection: TypeAlias = str | Callable[[str, TensorDescriptor], bool]

#: Which parameters, and what their hyperparameters are: a number, or a :class:`Multiplier` of the others' value.
ParameterGroup: TypeAlias = tuple[Selection, Mapping[str, "float | Multiplier"]]


@dataclass(frozen=True)
class Multiplier:
    """A hyperparameter of a group, as a multiple of the optimizer's own, whatever that is at the time.

    Attributes:
        factor: What it is multiplied by, from 0.

    Example:
        >>> groups = [("*.bias", {"weight_decay": 0.0}), ("encoder.*", {"learning_rate": Multiplier(0.1)})]
    """

    factor: float

    def __post_init__(self) -> None:
        """Check the factor."""
        object.__setattr__(self, "factor", non_negative("factor", self.factor))


class ParameterGroups:
    """Which parameter belongs to which group; group 0 holds those that no selection names.

    Attributes:
        values: The hyperparameters of each group.
    """

    def __init__(
        self, groups: Iterable[ParameterGroup] | None, parameters: Mapping[str, TensorDescriptor], names: Sequence[str]
    ) -> None:
        """Assign every parameter to the first group that selects it.

        Args:
            groups: The groups.
            parameters: Descriptors by name.
            names: Names of the hyperparameters.

        Raises:
            TrainingError: A group is none, selects no parameter, or sets what is no hyperparameter.
        """
        if groups is not None and (isinstance(groups, (str, Mapping)) or not isinstance(groups, Iterable)):
            raise TrainingError(
                f"parameter_groups was given as {shown(groups)}; accepted is a list of pairs of a pattern of names, "
                f"such as '*.bias', or a function of (name, descriptor), and a dictionary of hyperparameters."
            )
        self.values: list[dict[str, float | Multiplier]] = [{}]
        self._group: dict[str, int] = dict.fromkeys(parameters, 0)
        for group in groups or ():
            selection, values = _taken(group)
            chosen = [name for name, kind in parameters.items() if _selects(selection, name, kind)]
            if not chosen:
                raise TrainingError(
                    f"The group {shown(selection)} of parameter_groups selects no parameter. There are: "
                    f"{', '.join(parameters)}."
                )
            self.values.append({name: _value(name, value, names) for name, value in values.items()})
            for name in chosen:
                if not self._group[name]:
                    self._group[name] = len(self.values) - 1

    def __len__(self) -> int:
        """Return the number of groups, group 0 included."""
        return len(self.values)

    def of(self, name: str) -> int:
        """Return the number of a parameter's group; 0 for what is no parameter."""
        return self._group.get(name, 0)

    @contextlib.contextmanager
    def applied(self, group: int, owner: Any) -> Iterator[None]:
        """Give an optimizer the hyperparameters of a group for a while."""
        values = self.values[group]
        before = {name: getattr(owner, name) for name in values}
        try:
            for name, value in values.items():
                setattr(owner, name, before[name] * value.factor if isinstance(value, Multiplier) else value)
            yield
        finally:
            for name, old in before.items():
                setattr(owner, name, old)


def _taken(group: Any) -> tuple[Selection, Mapping[str, Any]]:
    if (
        not isinstance(group, (tuple, list))
        or len(group) != 2
        or not (isinstance(group[0], str) or callable(group[0]))
        or not isinstance(group[1], Mapping)
    ):
        raise TrainingError(
            f"parameter_groups has {shown(group)}; accepted are pairs of a pattern of names, such as '*.bias', or a "
            f"function of (name, descriptor), and a dictionary of hyperparameters."
        )
    return group[0], group[1]


def _selects(selection: Selection, name: str, descriptor: TensorDescriptor) -> bool:
    if isinstance(selection, str):
        return fnmatch.fnmatchcase(name, selection)
    try:
        return bool(selection(name, descriptor))
    except Exception as error:  # whatever the user's function raises
        raise TrainingError(
            f"The function {getattr(selection, '__name__', type(selection).__name__)} of parameter_groups failed on "
            f"the parameter {name!r}: {type(error).__name__}: {error}. It is called with (name, descriptor) and "
            f"returns True or False."
        ) from error


def _value(name: Any, value: Any, names: Sequence[str]) -> float | Multiplier:
    if name not in names:
        raise TrainingError(
            f"parameter_groups sets {name!r}, which is no hyperparameter of this optimizer.{near_miss(name, names)} "
            f"Accepted: {', '.join(names)}."
        )
    return value if isinstance(value, Multiplier) else non_negative(str(name), value)
