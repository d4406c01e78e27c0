"""Gradient descent."""

from __future__ import annotations

from typing import Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import non_negative
from deep500.training.optimizer import GradientModifier, UpdateRuleOptimizer

__all__ = ["GradientDescent"]


class GradientDescent(UpdateRuleOptimizer):
    r"""Stochastic gradient descent.

    .. math:: \theta_t = \theta_{t-1} - \alpha g_t

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.

    Source: H. Robbins, S. Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22(3), 1951.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            gradient_modifier: Changes each gradient before it is used.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, gradient_modifier=gradient_modifier)
        self.learning_rate = non_negative("learning_rate", learning_rate)

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the parameter moved against its gradient."""
        return old_param - float(self.learning_rate) * grad
