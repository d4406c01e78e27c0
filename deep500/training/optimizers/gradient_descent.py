"""Gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import non_negative
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["GradientDescent"]


class GradientDescent(UpdateRuleOptimizer):
    r"""Stochastic gradient descent.

    .. math:: \theta_t = \theta_{t-1} - \alpha g_t

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.

    Source: H. Robbins, S. Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22(3), 1951.
    """

    hyperparameter_names = ("learning_rate",)
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the step size."""
        return {"rate": self.learning_rate}

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved against its gradient."""
        return parameter - scalars["rate"] * gradient, {}
