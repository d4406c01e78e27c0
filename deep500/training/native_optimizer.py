"""Hyperparameters of a framework's own optimizers, under the names that all optimizers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from deep500.training.hyperparameters import non_negative
from deep500.training.optimizer import Optimizer
from deep500.training.parameter_groups import Multiplier

__all__ = ["NativeHyperparameter", "NativeHyperparameters"]


@dataclass(frozen=True)
class NativeHyperparameter:
    """Where a framework's optimizer has a hyperparameter.

    Attributes:
        key: Its name there.
        index: Its number, where that is a tuple of several.
        check: Returns a value that is accepted; raises ``TrainingError``.
    """

    key: str
    index: int | None = None
    check: Callable[[str, Any], float] = non_negative


class NativeHyperparameters(Optimizer):
    """An optimizer whose hyperparameters are properties that write through to a framework's own.

    Attributes:
        native_hyperparameters: Where they are, by name. A class that names them gets the properties.
    """

    native_hyperparameters: ClassVar[Mapping[str, NativeHyperparameter]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the properties."""
        own = vars(cls).get("native_hyperparameters", {})
        for name, place in own.items():
            setattr(cls, name, _written_through(name, place))
        if own:
            cls.hyperparameter_names = tuple(own)
        super().__init_subclass__(**arguments)

    def group_values(self, group: int) -> dict[str, float]:
        """Return the hyperparameters of a group of parameters by name."""
        values = {name: float(getattr(self, name)) for name in self.native_hyperparameters}
        for name, value in self._groups.values[group].items():
            if name in values:
                values[name] = values[name] * value.factor if isinstance(value, Multiplier) else value
        return values

    def write_hyperparameters(self) -> None:
        """Give the framework's optimizer the hyperparameters as they are now."""


def _written_through(name: str, place: NativeHyperparameter) -> property:
    attribute = f"_{name}_value"

    def get(self: NativeHyperparameters) -> float:
        return float(getattr(self, attribute))

    def set_value(self: NativeHyperparameters, value: float) -> None:
        setattr(self, attribute, place.check(name, value))
        self.write_hyperparameters()

    return property(get, set_value, doc=f"The optimizer's ``{place.key}``; it may be changed between steps.")
