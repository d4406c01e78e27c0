"""AdaGrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AdaGradOptimizer"]


class AdaGradOptimizer(UpdateRuleOptimizer):
    r"""AdaGrad: steps scaled by the root of the sum of all squared gradients.

    .. math::
        G_t &= G_{t-1} + g_t^2, \qquad G_0 = \delta \\
        \theta_t &= \theta_{t-1} - \alpha g_t / (\sqrt{G_t} + \epsilon)

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        epsilon: The constant :math:`\epsilon`, added after the root.
        initial_accumulator: The sum :math:`\delta` that it starts from.

    Source: J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", JMLR 12, 2011, figure 1, diagonal matrices.
    """

    hyperparameter_names = ("learning_rate", "epsilon")
    slots = ("squares",)
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        epsilon: float = 1e-10,
        initial_accumulator: float = 0.0,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            epsilon: Keeps the divisor from 0, above 0. Below 6e-8 it vanishes in a float16 network.
            initial_accumulator: Sum of squares before the first step, from 0.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.epsilon = positive("epsilon", epsilon)
        self.initial_accumulator = non_negative("initial_accumulator", initial_accumulator)

    def scalars(self, step: int) -> dict[str, float]:
        """Return step size, the constant of the divisor, and the sum before the first step."""
        # Slots start at 0; what the sum starts from is added at the first step.
        start = self.initial_accumulator if step == 1 else 0.0
        return {"rate": float(self.learning_rate), "epsilon": float(self.epsilon), "start": start}

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved against its gradient, over the root of the sum of squares."""
        squares = slots["squares"] + gradient * gradient
        if self.initial_accumulator:
            squares = squares + scalars["start"]
        divisor = self.functions.sqrt(squares) + scalars["epsilon"]
        return parameter - scalars["rate"] * gradient / divisor, {"squares": squares}
