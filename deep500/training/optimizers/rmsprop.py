"""RMSProp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.errors import TrainingError
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["RMSPropOptimizer"]


class RMSPropOptimizer(UpdateRuleOptimizer):
    r"""RMSProp: steps scaled by the root of the running mean of squared gradients.

    .. math::
        v_t &= \rho v_{t-1} + (1 - \rho) g_t^2 \\
        \bar g_t &= \rho \bar g_{t-1} + (1 - \rho) g_t & \text{(centered; else 0)} \\
        b_t &= \mu b_{t-1} + g_t / (\sqrt{v_t - \bar g_t^2} + \epsilon) \\
        \theta_t &= \theta_{t-1} - \alpha b_t

    with :math:`v_0 = \bar g_0 = b_0 = 0`.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        decay: Decay :math:`\rho` of the means.
        epsilon: The constant :math:`\epsilon`, added after the root.
        momentum: The momentum :math:`\mu`.
        centered: Whether the variance of the gradient divides instead of its second moment.

    Source: T. Tieleman, G. Hinton, "Lecture 6.5 - rmsprop", COURSERA: Neural Networks for Machine Learning, 2012
    (:math:`\rho = 0.9`); centered and with momentum: A. Graves, "Generating Sequences With Recurrent Neural Networks",
    arXiv:1308.0850, equations 38 to 41, with :math:`\epsilon` after the root, as in ``torch.optim.RMSprop``.
    """

    hyperparameter_names = ("learning_rate", "decay", "epsilon", "momentum")
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        decay: float = 0.9,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            decay: Decay of the means, from 0 to below 1.
            epsilon: Keeps the divisor from 0, above 0. Below 6e-8 it vanishes in a float16 network.
            momentum: The momentum, from 0 to below 1.
            centered: Whether to divide by the deviation instead of the root mean square.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.decay = fraction("decay", decay)
        self.epsilon = positive("epsilon", epsilon)
        self.momentum = fraction("momentum", momentum)
        self.centered = flag("centered", centered)
        self.slots = ("squares", *(["mean"] if self.centered else []), *(["velocity"] if self.momentum else []))

    def scalars(self, step: int) -> dict[str, float]:
        """Return step size, decay and its complement, momentum, and the constant of the divisor."""
        if self.momentum and "velocity" not in self.slots:
            raise TrainingError("RMSPropOptimizer was made without momentum; give it one, which may be changed later.")
        decay = float(self.decay)
        return {
            "rate": float(self.learning_rate),
            "decay": decay,
            "gain": 1.0 - decay,
            "momentum": float(self.momentum),
            "epsilon": float(self.epsilon),
        }

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved against its scaled velocity."""
        squares = scalars["decay"] * slots["squares"] + scalars["gain"] * (gradient * gradient)
        following, variance = {"squares": squares}, squares
        if self.centered:
            mean = following["mean"] = scalars["decay"] * slots["mean"] + scalars["gain"] * gradient
            # Rounding may make the variance of a constant gradient negative.
            variance = self.functions.maximum(squares - mean * mean, self.functions.zeros_like(squares))
        step = gradient / (self.functions.sqrt(variance) + scalars["epsilon"])
        if "velocity" in self.slots:
            step = following["velocity"] = scalars["momentum"] * slots["velocity"] + step
        return parameter - scalars["rate"] * step, following
