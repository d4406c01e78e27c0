"""Update rules through ``torch.compile``: one loop over the elements of a parameter, not one for each operation."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from deep500.core.texts import message_of
from deep500.frameworks.pytorch._update_units import Unit, apply_rule
from deep500.measure.clock import Stopwatch
from deep500.networks.parameter_updates import StepScalars, TrainingRule

__all__ = ["CompiledRule"]

#: Runs of each form by which it is decided; the quickest counts, since others were interrupted.
_TRIALS = 7

#: A compiled form has to be quicker than so much of the other's time to be taken.
_PAYS_BELOW = 0.98


class CompiledRule:
    """An elementwise rule, compiled for all units of a step in one call, of any sizes.

    Attributes:
        pays: Whether it is faster than the rule as it is; ``None`` until :meth:`choose` was called.
    """

    def __init__(self, rule: TrainingRule) -> None:
        """Compile nothing yet.

        Args:
            rule: The rule.
        """
        self.rule = rule
        self.pays: bool | None = None
        slot_names = rule.slots

        def update(
            gradients: list[torch.Tensor],
            parameters: list[torch.Tensor],
            slots: list[list[torch.Tensor]],
            numbers: torch.Tensor,
            cells: tuple[int, ...],
            names: tuple[str, ...],
            decays: bool,
        ) -> None:
            rows = [row.unbind() for row in numbers.unbind()]
            for gradient, parameter, kept_slots, cell in zip(gradients, parameters, slots, cells, strict=True):
                kept, *values = rows[cell]
                scalars: Mapping[str, Any] = dict(zip(names, values, strict=True))
                by_name = dict(zip(slot_names, kept_slots, strict=True))
                apply_rule(rule, scalars, kept if decays else None, gradient, parameter, by_name)

        self._function: Callable[..., None] = torch.compile(_of_its_own(update), fullgraph=True, dynamic=True)

    def apply(
        self, units: Sequence[Unit], gradients: Mapping[str, torch.Tensor], scalars: Sequence[StepScalars]
    ) -> None:
        """Update all units.

        Args:
            units: What is updated.
            gradients: The gradients by name.
            scalars: The numbers of each cell.
        """
        pairs = [unit.flat([gradients[name] for name in unit.names]) for unit in units]
        # In float64, as Python's numbers are: a scalar tensor does not widen the others.
        rows = [[entry.kept, *entry.values.values()] for entry in scalars]
        numbers = torch.tensor(rows, dtype=torch.float64).to(pairs[0][0].device)
        self._function(
            [gradient for gradient, _ in pairs],
            [parameter for _, parameter in pairs],
            [unit.flat_slots for unit in units],
            numbers,
            tuple([unit.cell for unit in units]),
            tuple(scalars[0].values),
            any(entry.kept != 1.0 for entry in scalars),
        )
        for unit, (_, parameter) in zip(units, pairs, strict=True):
            unit.take(parameter)

    def choose(self, units: Sequence[Unit], plain: Callable[[], None], fast: Callable[[], None]) -> str:
        """Decide by time whether the compiled form is used, and return what was found.

        Args:
            units: What is updated; it has the same values afterwards as before.
            plain: Updates by the rule as it is.
            fast: Updates by :meth:`apply`.
        """
        self.pays = False
        changed = [tensor for unit in units for tensor in unit.tensors()]
        before = [tensor.clone() for tensor in changed]
        is_cuda = changed[0].is_cuda
        try:
            first = _timed(fast, is_cuda)
            times = [(_timed(plain, is_cuda), _timed(fast, is_cuda)) for _ in range(_TRIALS)]
        except Exception as error:  # noqa: BLE001 - whatever the compiler meets, the rule runs without it
            return f"not compiled: {type(error).__name__}: {message_of(error)[:300]}"
        finally:
            torch._foreach_copy_(changed, before)
        slow, quick = (min(column) for column in zip(*times, strict=True))
        self.pays = quick < _PAYS_BELOW * slow
        found = f"{1e3 * quick:.3g} ms compiled (in {first:.1f} s), {1e3 * slow:.3g} ms otherwise"
        return f"compiled: {found}" if self.pays else f"compiling does not pay: {found}"


def _of_its_own(function: Any) -> types.FunctionType:
    """Return a function with code of its own: PyTorch limits how often one code is specialised, for whatever rule."""
    code = function.__code__.replace()
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def _timed(update: Callable[[], None], is_cuda: bool) -> float:
    """Return how long an update takes."""
    watch = Stopwatch(torch.cuda.synchronize if is_cuda else None)
    update()
    return watch.elapsed_s()
