"""Adam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._moments import moment_scalars, moments

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AdamOptimizer"]


class AdamOptimizer(UpdateRuleOptimizer):
    r"""Adam: steps scaled by running estimates of the gradient's first and second moment.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t, & \hat m_t &= m_t / (1 - \beta_1^t) \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, & \hat v_t &= v_t / (1 - \beta_2^t) \\
        \theta_t &= \theta_{t-1} - \alpha \hat m_t / (\sqrt{\hat v_t} + \epsilon)

    with :math:`m_0 = v_0 = 0`. The step :math:`t` is counted for each parameter by itself.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        beta1: Decay :math:`\beta_1` of the first moment.
        beta2: Decay :math:`\beta_2` of the second moment.
        epsilon: The constant :math:`\epsilon`, added after the root.

    Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1.
    """

    hyperparameter_names = ("learning_rate", "beta1", "beta2", "epsilon")
    slots = ("first", "second")
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            beta1: Decay of the first moment, from 0 to below 1.
            beta2: Decay of the second moment, from 0 to below 1.
            epsilon: Keeps the divisor from 0, above 0. Below 6e-8 it vanishes in a float16 network.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)
        self.epsilon = positive("epsilon", epsilon)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the decays, and the step size and epsilon that have the moments' bias corrected in them."""
        return moment_scalars(self.learning_rate, self.beta1, self.beta2, self.epsilon, step)

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved by the ratio of its moments."""
        first, second = moments(gradient, slots, scalars)
        step = scalars["rate"] * first / (self.functions.sqrt(second) + scalars["epsilon"])
        return parameter - step, {"first": first, "second": second}
