"""LAMB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._moments import moment_scalars, moments
from deep500.training.optimizers._trust import trust_ratio

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["LAMBOptimizer"]


class LAMBOptimizer(UpdateRuleOptimizer):
    r"""LAMB: Adam with a step for each layer that fits the size of its weights.

    .. math::
        r_t &= \hat m_t / (\sqrt{\hat v_t} + \epsilon) + \lambda \theta_{t-1} \\
        \theta_t &= \theta_{t-1} - \alpha \frac{\|\theta_{t-1}\|}{\|r_t\|} r_t

    with the moments :math:`\hat m_t` and :math:`\hat v_t` of Adam. Each parameter is a layer. Where its norm or that of
    :math:`r_t` is 0, their ratio is 1.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        beta1: Decay :math:`\beta_1` of the first moment.
        beta2: Decay :math:`\beta_2` of the second moment.
        epsilon: The constant :math:`\epsilon`, added after the root.
        weight_decay: The decay :math:`\lambda`, part of the formula here.

    Source: Y. You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", ICLR 2020,
    algorithm 2, with :math:`\phi(z) = z`; :math:`\epsilon = 10^{-6}` and :math:`\lambda = 0.01` of section 4.
    """

    hyperparameter_names = ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay")
    slots = ("first", "second")
    decays_weights = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            beta1: Decay of the first moment, from 0 to below 1.
            beta2: Decay of the second moment, from 0 to below 1.
            epsilon: Keeps the divisor from 0, above 0. Below 6e-8 it vanishes in a float16 network.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`; ``weight_decay`` is
                0.01 by default.

        Raises:
            TrainingError: An argument is not accepted.
        """
        options.setdefault("weight_decay", 0.01)
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)
        self.epsilon = positive("epsilon", epsilon)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the numbers of Adam's direction, the step size and the decay."""
        numbers = moment_scalars(1.0, self.beta1, self.beta2, self.epsilon, step)
        # The rate of moments is that of Adam's direction alone; the step size comes after the trust ratio.
        return {**numbers, "step_size": float(self.learning_rate), "decay": float(self.weight_decay)}

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved by its direction, made as long as itself."""
        first, second = moments(gradient, slots, scalars)
        direction = scalars["rate"] * first / (self.functions.sqrt(second) + scalars["epsilon"])
        direction = direction + scalars["decay"] * parameter
        norm, length = self.functions.norm(parameter), self.functions.norm(direction)
        ratio = trust_ratio(self.functions, norm, length, norm, length)
        return parameter - scalars["step_size"] * ratio * direction, {"first": first, "second": second}
