"""The base of PyTorch's own optimizers behind the common contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from deep500.core.errors import CheckpointError, TrainingError
from deep500.frameworks.pytorch.executor import PyTorchExecutor
from deep500.networks.graph_executor import GraphExecutor
from deep500.training._attribute_state import saved_value
from deep500.training.native_optimizer import NativeHyperparameters
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["NativeOptimizer"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NativeOptimizer(NativeHyperparameters):
    """Wraps an optimizer of ``torch.optim``; all options of :class:`OptimizerOptions` work with it.

    A class names its hyperparameters in ``native_hyperparameters`` and ``torch.optim``'s class in ``kind``. A group of
    ``parameter_groups`` is a group of that one.

    Where PyTorch has one kernel for the whole update (``fused``), it is used: one call in place of several for each
    parameter, with the same formula.

    Attributes:
        kind: What makes the wrapped optimizer, of groups of parameters and the hyperparameters.
        has_fused_kernel: Whether ``kind`` takes ``fused``.
        native: The wrapped optimizer.
        parameters: The parameters by name.
    """

    kind: ClassVar[Callable[..., torch.optim.Optimizer]]
    has_fused_kernel: ClassVar[bool] = False
    _native_groups: Sequence[int] = ()

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str,
        hyperparameters: Mapping[str, float],
        fixed: Mapping[str, Any] = _NOTHING,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Create the wrapped optimizer over the executor's parameters.

        Args:
            executor: A PyTorch executor.
            loss: Name of the loss.
            hyperparameters: Values of ``native_hyperparameters``.
            fixed: Further arguments of the wrapped optimizer.
            **options: See :class:`OptimizerOptions`.

        Raises:
            TrainingError: The executor is another framework's, or a value is not accepted.
        """
        super().__init__(executor, loss, **options)
        if not isinstance(executor, PyTorchExecutor):
            raise TrainingError(
                f"{type(self).__name__} of deep500.frameworks.pytorch needs a PyTorch executor; received one of "
                f"{executor.framework}. Use the optimizer of that framework, or deep500's own of the same name."
            )
        self.parameters = {name: executor.stored.tensor(name) for name in self.network.get_params()}
        for name, value in hyperparameters.items():
            setattr(self, name, value)
        members: dict[int, list[torch.Tensor]] = {}
        for name, parameter in self.parameters.items():
            members.setdefault(self.group_of(name), []).append(parameter)
        kind = type(self).kind
        self._native_groups = list(members)
        groups = [{"params": members[group], **self._native_values(group)} for group in members]
        if self.has_fused_kernel and all(map(_can_be_fused, self.parameters.values())):
            fixed = {**fixed, "fused": True}
        self.native = kind(groups, **{**fixed, **self._native_values(0)})
        # Options that change gradients, or need to know of every step.
        given = (self.gradient_modifier, self.clip_value, self.clip_norm, self.ema_decay)
        self._is_plain = all(option is None for option in given) and self.accumulation_steps == 1

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        outputs = self.executor.inference_and_backprop(inputs, self.loss)
        self.apply_gradients()
        return outputs

    def apply_gradients(self) -> None:
        """Update with the gradients that the executor has, unless more minibatches are awaited."""
        decays = self.decays_weights and bool(self.weight_decay)
        if self._is_plain and not decays and self.clip_value is None and self.clip_norm is None:
            self.native.step()
            self.step_count += 1
            return
        updates = self.updates
        gradients = updates.gradients()
        if gradients is None:
            return
        updates.start_average()
        with torch.no_grad():
            for name, gradient in gradients.items():
                parameter = self.parameters[name]
                parameter.grad = gradient
                kept = self.step_scalars(self.group_of(name), self.step_count + 1).kept if decays else 1.0
                if kept != 1.0:
                    parameter.mul_(kept)
        self.native.step()
        updates.finish()

    def write_hyperparameters(self) -> None:
        """Write the hyperparameters into the wrapped optimizer's groups."""
        for number, group in enumerate(self._native_groups):
            self.native.param_groups[number].update(self._native_values(group))

    def _native_values(self, group: int) -> dict[str, Any]:
        """Return the hyperparameters of a group by PyTorch's names."""
        values = self.group_values(group)
        native: dict[str, Any] = {}
        for name, place in self.native_hyperparameters.items():
            if place.index is None:
                native[place.key] = values[name]
            else:
                native[place.key] = (*native.get(place.key, ()), values[name])
        return native

    def _attributes(self) -> dict[str, Any]:
        state = self.native.state
        return {
            name: saved_value(f"state of {name!r}", dict(state[parameter]), self.executor)
            for name, parameter in self.parameters.items()
            if parameter in state
        }

    def _checked_attributes(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        for name in saved:
            if name not in self.parameters:
                raise CheckpointError(
                    f"The checkpoint's optimizer has the parameter {name!r}; the network has: "
                    f"{', '.join(self.parameters)}. Restore it with the network that was trained."
                )
        restored = super()._checked_attributes(saved)
        for name, values in restored.items():
            self._check_shapes(name, values)
        return restored

    def _check_shapes(self, name: str, values: Mapping[str, Any]) -> None:
        shape = self.parameters[name].shape
        for key, value in values.items():
            if isinstance(value, torch.Tensor) and value.ndim and value.shape != shape:
                raise CheckpointError(
                    f"The checkpoint has {key!r} of parameter {name!r} in shape {tuple(value.shape)}; the network's is "
                    f"{tuple(shape)}. Restore it with the network that was trained."
                )

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        self.native.state.clear()
        for name, entries in values.items():
            self.native.state[self.parameters[name]] = dict(entries)


def _can_be_fused(parameter: torch.Tensor) -> bool:
    return parameter.is_floating_point() and parameter.device.type in ("cpu", "cuda")
