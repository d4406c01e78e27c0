"""AMSGrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._moments import moment_scalars, moments

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AMSGradOptimizer"]


class AMSGradOptimizer(UpdateRuleOptimizer):
    r"""AMSGrad: Adam with a second moment that never shrinks.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \hat v_t &= \max(\hat v_{t-1}, v_t) \\
        \theta_t &= \theta_{t-1} - \alpha m_t / (\sqrt{\hat v_t} + \epsilon)

    with :math:`m_0 = v_0 = \hat v_0 = 0`. The paper has neither :math:`\epsilon` (which keeps the divisor from 0) nor
    Adam's correction of the bias. With ``bias_correction``, :math:`m_t` is divided by :math:`1 - \beta_1^t` and
    :math:`\hat v_t` by :math:`1 - \beta_2^t`, as in ``torch.optim.Adam(amsgrad=True)``.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        beta1: Decay :math:`\beta_1` of the first moment.
        beta2: Decay :math:`\beta_2` of the second moment.
        epsilon: The constant :math:`\epsilon`, added after the root.
        bias_correction: Whether the bias of the moments is corrected.

    Source: S. J. Reddi, S. Kale, S. Kumar, "On the Convergence of Adam and Beyond", ICLR 2018, algorithm 2.
    """

    hyperparameter_names = ("learning_rate", "beta1", "beta2", "epsilon")
    slots = ("first", "second", "largest")
    elementwise = True

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        bias_correction: bool = False,
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
            bias_correction: Whether to correct the bias of the moments as Adam does.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)
        self.epsilon = positive("epsilon", epsilon)
        self.bias_correction = flag("bias_correction", bias_correction)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the decays, and the step size and epsilon that have the moments' bias corrected in them."""
        return moment_scalars(
            self.learning_rate, self.beta1, self.beta2, self.epsilon, step, corrected=self.bias_correction
        )

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved by its first moment over the root of its largest second."""
        first, second = moments(gradient, slots, scalars)
        largest = self.functions.maximum(slots["largest"], second)
        step = scalars["rate"] * first / (self.functions.sqrt(largest) + scalars["epsilon"])
        return parameter - step, {"first": first, "second": second, "largest": largest}
