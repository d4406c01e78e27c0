"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative
from deep500.training.optimizer import GradientModifier, UpdateRuleOptimizer

__all__ = ["MomentumOptimizer"]


class MomentumOptimizer(UpdateRuleOptimizer):
    r"""Stochastic gradient descent with momentum (the heavy ball).

    .. math::
        v_t &= \mu v_{t-1} + g_t, \qquad v_0 = 0 \\
        \theta_t &= \theta_{t-1} - \alpha v_t

    While the learning rate is constant, this is :math:`v_t = \mu v_{t-1} - \alpha g_t`,
    :math:`\theta_t = \theta_{t-1} + v_t` as well; when it changes, it acts here at once on the whole velocity, as in
    ``torch.optim.SGD``.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        momentum: The momentum :math:`\mu`.

    Source: B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational
    Mathematics and Mathematical Physics 4(5), 1964.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            momentum: The momentum, from 0 to below 1.
            gradient_modifier: Changes each gradient before it is used.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, gradient_modifier=gradient_modifier)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.momentum = fraction("momentum", momentum)
        self._velocities: dict[str, Any] = {}

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Return the parameter moved against its velocity."""
        if param_name in self._velocities:
            velocity = float(self.momentum) * self._velocities[param_name] + grad
        else:
            velocity = 1.0 * grad  # a copy: the executor may use the gradient's memory again
        self._velocities[param_name] = velocity
        return old_param - float(self.learning_rate) * velocity
