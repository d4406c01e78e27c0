"""LARS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._trust import trust_ratio

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LARSOptimizer"]


class LARSOptimizer(UpdateRuleOptimizer):
    r"""LARS: momentum with a step for each layer that fits the size of its weights.

    .. math::
        \lambda_t &= \eta \frac{\|\theta_{t-1}\|}{\|g_t\| + \beta \|\theta_{t-1}\|} \\
        v_t &= \mu v_{t-1} + \alpha \lambda_t (g_t + \beta \theta_{t-1}), \qquad v_0 = 0 \\
        \theta_t &= \theta_{t-1} - v_t

    Each parameter is a layer. Where its norm or its gradient's is 0, :math:`\lambda_t = 1`.

    Attributes:
        learning_rate: The global step size :math:`\alpha`; it may be changed between steps.
        momentum: The momentum :math:`\mu`.
        weight_decay: The decay :math:`\beta`, part of the formula here.
        trust: The trust coefficient :math:`\eta`.

    Source: Y. You, I. Gitman, B. Ginsburg, "Large Batch Training of Convolutional Networks", arXiv:1708.03888,
    algorithm 1, with :math:`\eta = 0.001`, :math:`\beta = 0.0005`.
    """

    hyperparameter_names = ("learning_rate", "momentum", "weight_decay", "trust")
    slots = ("velocity",)
    decays_weights = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        trust: float = 0.001,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            momentum: The momentum, from 0 to below 1.
            trust: The trust coefficient, above 0.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`; ``weight_decay`` is
                0.0005 by default.

        Raises:
            TrainingError: An argument is not accepted.
        """
        options.setdefault("weight_decay", 0.0005)
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.momentum = fraction("momentum", momentum)
        self.trust = positive("trust", trust)

    def scalars(self, step: int) -> dict[str, float]:
        """Return step size, momentum, decay and trust coefficient."""
        return {
            "rate": float(self.learning_rate),
            "momentum": float(self.momentum),
            "decay": float(self.weight_decay),
            "trust": float(self.trust),
        }

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved against its velocity."""
        norm, gradient_norm = self.functions.norm(parameter), self.functions.norm(gradient)
        divisor = gradient_norm + scalars["decay"] * norm
        ratio = trust_ratio(self.functions, scalars["trust"] * norm, divisor, norm, gradient_norm)
        decayed = gradient + scalars["decay"] * parameter
        velocity = scalars["momentum"] * slots["velocity"] + scalars["rate"] * ratio * decayed
        return parameter - velocity, {"velocity": velocity}
