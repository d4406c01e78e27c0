"""Updates of parameters on PyTorch's tensors: small ones joined, large ones in parts that stay in the cache."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from deep500.core.errors import TrainingError
from deep500.frameworks.pytorch._compiled_rule import CompiledRule
from deep500.frameworks.pytorch._update_units import ApplyRule, JoinedUnit, SingleUnit, Unit, apply_rule
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.parameter_updates import ParameterUpdates, StepScalars, TrainingRule

if TYPE_CHECKING:
    from deep500.frameworks.pytorch.executor import PyTorchExecutor

__all__ = ["TorchUpdates"]

#: Parameters with at most so many elements are joined: below, a call costs more than the arithmetic.
_SMALL = 1 << 15

#: How often the parameters that have gradients may change before they are no longer joined.
_MOST_PLANS = 3


class TorchUpdates(ParameterUpdates):
    """Updates parameters in place, without autograd.

    An elementwise rule is applied to small parameters joined and to large ones in parts, which changes no result. Where
    the executor compiles, the rule becomes one loop over a parameter by ``torch.compile``, if that is faster.
    """

    def __init__(self, own: PyTorchExecutor, source: GraphExecutor, rule: TrainingRule) -> None:
        """Start with slots of zeros.

        Args:
            own: Holds the parameters.
            source: Has the gradients: the same executor, or one that wraps it.
            rule: What is applied.
        """
        super().__init__(source, rule)
        self.own = own
        self._parameters = {name: own.stored.tensor(name) for name in self._names}
        self._plan: _Plan | None = None
        self._plans_made = 0
        self._compiled: CompiledRule | None = None

    @torch.no_grad()
    def apply(self) -> None:
        """Update; see :meth:`ParameterUpdates.apply`."""
        if not self.rule.is_pure:
            super().apply()
            return
        gradients = self.gradients()
        if gradients is None:
            return
        self.start_average()
        plan = self._plan
        if plan is None or not plan.fits(gradients):
            plan = self._new_plan(gradients)
        counts = self.counts
        for name in plan.names:
            counts[name] += 1
        scalars = [self.rule.step_scalars(group, counts[names[0]]) for group, names in plan.cells]
        if not plan.is_checked:
            self._check(plan, gradients, scalars)
        self._update(plan, gradients, scalars)
        self.finish()

    def _update(self, plan: _Plan, gradients: Mapping[str, torch.Tensor], scalars: Sequence[StepScalars]) -> None:
        """Update all units, by the compiled rule where there is one that pays."""
        if self._compiled is not None and self._compiled.pays:
            self._compiled.apply(plan.units, gradients, scalars)
            return
        applied = [self._plain(entry) for entry in scalars]
        for unit in plan.units:
            unit.apply(applied[unit.cell], [gradients[name] for name in unit.names])

    def _plain(self, scalars: StepScalars) -> ApplyRule:
        """Return what applies the rule as it is with the numbers of a step."""
        kept = None if scalars.kept == 1.0 else scalars.kept
        return functools.partial(apply_rule, self.rule, scalars.values, kept)

    def _check(self, plan: _Plan, gradients: Mapping[str, torch.Tensor], scalars: Sequence[StepScalars]) -> None:
        """Check what the rule returns for each unit, and choose its form if that was not done."""
        for unit in plan.units:
            unit.check(self.rule, [gradients[name] for name in unit.names], scalars[unit.cell])
        plan.is_checked = True
        if self.own.compiles and self.rule.elementwise and self._compiled is None:
            self._compiled = compiled = CompiledRule(self.rule)
            plain = functools.partial(self._update, plan, gradients, scalars)
            found = compiled.choose(
                plan.units, plain, functools.partial(compiled.apply, plan.units, gradients, scalars)
            )
            self.own._note_compilation(f"update by {type(self.rule).__name__}", found)

    @torch.no_grad()
    def gradients(self) -> dict[str, Any] | None:
        """Return the gradients to use; see :meth:`ParameterUpdates.gradients`."""
        rule = self.rule
        if self.executor is not self.own or rule.accumulation_steps > 1:
            return super().gradients()
        pairs = [(name, parameter.grad) for name, parameter in self._parameters.items()]
        found = {name: gradient for name, gradient in pairs if gradient is not None}
        if rule.gradient_modifier is None and rule.clip_value is None and rule.clip_norm is None:
            return found
        return self.shaped(found, self._parameters.__getitem__, rule.clip_value, rule.clip_norm)

    @torch.no_grad()
    def finish(self) -> None:
        """Count the update, and take the parameters into the average."""
        self.rule.step_count += 1
        if self.rule.ema_decay is not None:
            decay = float(self.rule.ema_decay)
            averages = list(self._averages.values())
            torch._foreach_mul_(averages, decay)
            torch._foreach_add_(averages, torch._foreach_mul(list(self._parameters.values()), 1.0 - decay))

    @torch.no_grad()
    def set_slot_values(self, name: str, values: Mapping[str, NDArray[Any]]) -> None:
        """Replace the slots of a parameter; no values begin them anew."""
        super().set_slot_values(name, values)
        self._plan = None  # it has the slots from before

    def _new_plan(self, gradients: Mapping[str, torch.Tensor]) -> _Plan:
        """Arrange the parameters that have gradients in units.

        Raises:
            TrainingError: A gradient has another shape or dtype than its parameter.
        """
        cells: dict[tuple[int, int], list[str]] = {}
        for name, gradient in gradients.items():
            parameter = self._parameters[name]
            if gradient.shape != parameter.shape or gradient.dtype != parameter.dtype:
                raise TrainingError(
                    f"The gradient of parameter {name!r} is {gradient.dtype} of shape {tuple(gradient.shape)}; the "
                    f"parameter is {parameter.dtype} of shape {tuple(parameter.shape)}."
                )
            cells.setdefault((self.rule.group_of(name), self.counts.setdefault(name, 0)), []).append(name)
            if name not in self._slots:
                zeros = {
                    slot: torch.zeros_like(parameter, memory_format=torch.contiguous_format) for slot in self.rule.slots
                }
                self._slots[name] = zeros
        self._plans_made += 1
        joins = self.rule.elementwise and self._plans_made <= _MOST_PLANS
        units: list[Unit] = []
        for number, names in enumerate(cells.values()):
            small = [name for name in names if self._parameters[name].numel() <= _SMALL] if joins else []
            for group in _alike(small, self._parameters):
                if len(group) > 1:
                    units.append(self._joined(group, number))
                else:
                    units.append(self._single(group[0], number))
            units += [self._single(name, number) for name in names if name not in small]
        self._plan = _Plan(tuple(gradients), [(group, names) for (group, _), names in cells.items()], units)
        return self._plan

    def _joined(self, names: Sequence[str], cell: int) -> JoinedUnit:
        parameters = [self._parameters[name] for name in names]
        slots = [self._slots[name] for name in names]
        unit = JoinedUnit(tuple(names), cell, parameters, slots)
        for name, views in zip(names, unit.slot_views(), strict=True):
            self._slots[name] = views
        return unit

    def _single(self, name: str, cell: int) -> SingleUnit:
        return SingleUnit(name, cell, self._parameters[name], self._slots[name])

    def _keep_slots(self, name: str, slots: Mapping[str, Any], following: Mapping[str, Any]) -> None:
        super()._keep_slots(name, slots, following)
        self._plan = None


class _Plan:
    """The units of a step.

    Attributes:
        names: Names of the parameters that have gradients.
        cells: Group and names of the parameters that have the same numbers.
        units: What is updated together.
        is_checked: Whether the rule was checked with them.
    """

    def __init__(self, names: tuple[str, ...], cells: list[tuple[int, list[str]]], units: list[Unit]) -> None:
        self.names, self.cells, self.units = names, cells, units
        self.is_checked = False

    def fits(self, gradients: Mapping[str, torch.Tensor]) -> bool:
        """Whether the same parameters have gradients, and lie where they lay."""
        return self.names == tuple(gradients) and all(unit.is_in_place() for unit in self.units)


def _alike(names: Sequence[str], parameters: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """Return names by dtype and device."""
    found: dict[Any, list[str]] = {}
    for name in names:
        found.setdefault((parameters[name].dtype, parameters[name].device), []).append(name)
    return list(found.values())


def _zeros_like(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(parameter, memory_format=torch.contiguous_format, requires_grad=False)
