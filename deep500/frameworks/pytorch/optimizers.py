"""PyTorch's own optimizers behind the common contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from deep500.core.errors import TrainingError
from deep500.frameworks.pytorch.executor import PyTorchExecutor
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import GradientModifier, Optimizer

__all__ = ["AdamOptimizer", "GradientDescent", "MomentumOptimizer", "NativeOptimizer"]


class NativeOptimizer(Optimizer):
    """Wraps an optimizer of ``torch.optim``.

    Attributes:
        native: The wrapped optimizer.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str,
        create: Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer],
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Create the wrapped optimizer over the executor's parameters.

        Args:
            executor: A PyTorch executor.
            loss: Name of the loss.
            create: Makes the optimizer from the parameters.
            gradient_modifier: See :class:`deep500.training.optimizer.Optimizer`.

        Raises:
            TrainingError: The executor is another framework's.
        """
        super().__init__(executor, loss, gradient_modifier=gradient_modifier)
        if not isinstance(executor, PyTorchExecutor):
            raise TrainingError(
                f"{type(self).__name__} of deep500.frameworks.pytorch needs a PyTorch executor; received one of "
                f"{executor.framework}. Use the optimizer of that framework, or deep500's own of the same name."
            )
        self.parameters = {name: executor.stored.tensor(name) for name in self.network.get_params()}
        self.native = create(self.parameters.values())

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        outputs = self.executor.inference_and_backprop(inputs, self.loss)
        if self.gradient_modifier is not None:
            with torch.no_grad():
                for name, parameter in self.parameters.items():
                    if parameter.grad is not None:
                        parameter.grad = self.modified(parameter.grad, parameter, name)
        self.native.step()
        return outputs


class GradientDescent(NativeOptimizer):
    """``torch.optim.SGD`` without momentum."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Set the step size."""
        rate = non_negative("learning_rate", learning_rate)
        super().__init__(executor, loss, lambda p: torch.optim.SGD(p, lr=rate), gradient_modifier)


class MomentumOptimizer(NativeOptimizer):
    """``torch.optim.SGD`` with momentum."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Set the step size and the share of the last step that is kept."""
        rate, kept = non_negative("learning_rate", learning_rate), fraction("momentum", momentum)
        super().__init__(executor, loss, lambda p: torch.optim.SGD(p, lr=rate, momentum=kept), gradient_modifier)


class AdamOptimizer(NativeOptimizer):
    """``torch.optim.Adam``."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Set the step size, the decay of both moments and what keeps the root from zero."""
        rate, small = non_negative("learning_rate", learning_rate), positive("epsilon", epsilon)
        betas = (fraction("beta1", beta1), fraction("beta2", beta2))
        super().__init__(
            executor, loss, lambda p: torch.optim.Adam(p, lr=rate, betas=betas, eps=small), gradient_modifier
        )
