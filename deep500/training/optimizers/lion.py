"""Lion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LionOptimizer"]


class LionOptimizer(UpdateRuleOptimizer):
    r"""Lion: steps of one size, in the direction of the sign of an interpolated momentum.

    .. math::
        c_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        \theta_t &= \theta_{t-1} - \alpha (\operatorname{sign}(c_t) + \lambda \theta_{t-1}) \\
        m_t &= \beta_2 m_{t-1} + (1 - \beta_2) g_t, \qquad m_0 = 0

    The decay :math:`\lambda` is the option ``weight_decay`` that every optimizer has.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        beta1: Share :math:`\beta_1` of the momentum in a step.
        beta2: Decay :math:`\beta_2` of the momentum.

    Source: X. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, program 1 and algorithm 2.
    """

    hyperparameter_names = ("learning_rate", "beta1", "beta2")
    slots = ("first",)
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 1e-4,
        beta1: float = 0.9,
        beta2: float = 0.99,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            beta1: Share of the momentum in a step, from 0 to below 1.
            beta2: Decay of the momentum, from 0 to below 1.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)

    def scalars(self, step: int) -> dict[str, float]:
        """Return step size, and decays with their complements."""
        beta1, beta2 = float(self.beta1), float(self.beta2)
        return {
            "rate": float(self.learning_rate),
            "beta1": beta1,
            "gain1": 1.0 - beta1,
            "beta2": beta2,
            "gain2": 1.0 - beta2,
        }

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved by the sign of the interpolated momentum."""
        first = slots["first"]
        direction = self.functions.sign(scalars["beta1"] * first + scalars["gain1"] * gradient)
        following = scalars["beta2"] * first + scalars["gain2"] * gradient
        return parameter - scalars["rate"] * direction, {"first": following}
