"""AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers.adam import AdamOptimizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AdamWOptimizer"]


class AdamWOptimizer(AdamOptimizer):
    r"""AdamW: Adam with weights that decay apart from the gradient's moments.

    .. math::
        \theta_t = \theta_{t-1} - \alpha (\hat m_t / (\sqrt{\hat v_t} + \epsilon) + \lambda \theta_{t-1})

    with the moments :math:`\hat m_t` and :math:`\hat v_t` of Adam. The learning rate :math:`\alpha`, which schedules
    change, stands for the paper's :math:`\eta_t \alpha` and scales the decay too, as in ``torch.optim.AdamW``.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        beta1: Decay :math:`\beta_1` of the first moment.
        beta2: Decay :math:`\beta_2` of the second moment.
        epsilon: The constant :math:`\epsilon`, added after the root.
        weight_decay: The decay :math:`\lambda`.

    Source: I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
    """

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
        super().__init__(executor, loss, learning_rate, beta1, beta2, epsilon, **options)
