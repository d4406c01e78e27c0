"""Gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MomentumOptimizer"]


class MomentumOptimizer(UpdateRuleOptimizer):
    r"""Stochastic gradient descent with momentum: the heavy ball, or Nesterov's, which looks ahead.

    .. math::
        v_t &= \mu v_{t-1} + g_t, \qquad v_0 = 0 \\
        \theta_t &= \theta_{t-1} - \alpha v_t & \text{(heavy ball)} \\
        \theta_t &= \theta_{t-1} - \alpha (g_t + \mu v_t) & \text{(Nesterov)}

    While the learning rate is constant, the heavy ball is :math:`v_t = \mu v_{t-1} - \alpha g_t`,
    :math:`\theta_t = \theta_{t-1} + v_t` as well; when it changes, it acts here at once on the whole velocity, as in
    ``torch.optim.SGD``. Nesterov's momentum is written for the point at which the gradient is taken, the one that is
    looked ahead to.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        momentum: The momentum :math:`\mu`.
        nesterov: Whether it looks ahead.

    Source: B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational
    Mathematics and Mathematical Physics 4(5), 1964; I. Sutskever et al., "On the importance of initialization and
    momentum in deep learning", ICML 2013, equations 3 and 4.
    """

    hyperparameter_names = ("learning_rate", "momentum")
    slots = ("velocity",)
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        nesterov: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size.
            momentum: The momentum, from 0 to below 1.
            nesterov: Whether to look ahead.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.momentum = fraction("momentum", momentum)
        self.nesterov = flag("nesterov", nesterov)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the step size and the momentum."""
        return {"rate": self.learning_rate, "momentum": self.momentum}

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved against its velocity."""
        velocity = scalars["momentum"] * slots["velocity"] + gradient
        ahead = gradient + scalars["momentum"] * velocity if self.nesterov else velocity
        return parameter - scalars["rate"] * ahead, {"velocity": velocity}
