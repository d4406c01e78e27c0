"""Adam."""

from __future__ import annotations

from typing import Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import GradientModifier, UpdateRuleOptimizer

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
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            beta1: Decay of the first moment, from 0 to below 1.
            beta2: Decay of the second moment, from 0 to below 1.
            epsilon: Keeps the divisor from 0, above 0. Below 6e-8 it vanishes in a float16 network.
            gradient_modifier: Changes each gradient before it is used.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, gradient_modifier=gradient_modifier)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)
        self.epsilon = positive("epsilon", epsilon)
        self._moments: dict[str, tuple[int, Any, Any]] = {}

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the parameter moved by the ratio of its moments."""
        beta1, beta2 = float(self.beta1), float(self.beta2)
        first = (1.0 - beta1) * grad
        second = (1.0 - beta2) * (grad * grad)
        steps = 1
        if param_name in self._moments:  # else both moments were 0
            steps, old_first, old_second = self._moments[param_name]
            steps += 1
            first = beta1 * old_first + first
            second = beta2 * old_second + second
        self._moments[param_name] = (steps, first, second)
        unbiased_first = first / (1.0 - beta1**steps)
        unbiased_second = second / (1.0 - beta2**steps)
        return old_param - float(self.learning_rate) * unbiased_first / (unbiased_second**0.5 + float(self.epsilon))
