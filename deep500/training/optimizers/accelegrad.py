"""AcceleGrad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import non_negative, positive
from deep500.training.optimizer import ThreeStepOptimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AcceleGradOptimizer"]


class AcceleGradOptimizer(ThreeStepOptimizer):
    r"""AcceleGrad: accelerated gradient descent that finds its step size from the gradients.

    .. math::
        \alpha_t &= 1 \text{ for } t \le 2, \text{ else } (t + 1) / 4, \qquad \tau_t = 1 / \alpha_t \\
        x_{t+1} &= \tau_t z_t + (1 - \tau_t) y_t, \qquad g_t = \nabla f(x_{t+1}) \\
        \eta_t &= 2 \gamma D / (G^2 + \textstyle\sum_{i=0}^t \alpha_i^2 \|g_i\|^2)^{1/2} \\
        z_{t+1} &= z_t - \alpha_t \eta_t g_t, \qquad y_{t+1} = x_{t+1} - \eta_t g_t

    for :math:`t = 0, 1, \dots`, where :math:`y_0 = z_0` are the initial parameters. The network computes at
    :math:`x_{t+1}`; after a step its parameters are :math:`y_{t+1}`. Each parameter is a problem of its own, with the
    norms of its own gradients, so that no step waits for the gradients of all. The steps are not projected to a set.

    Attributes:
        learning_rate: The factor :math:`\gamma`, 1 in the paper; it may be changed between steps.
        diameter: The diameter :math:`D` of the set in which the minimum is searched.
        gradient_bound: The bound :math:`G` of the gradients' norm.

    Source: K. Levy, A. Yurtsever, V. Cevher, "Online Adaptive Methods, Universality and Acceleration", NeurIPS 2018,
    algorithm 2 and theorem 2.1; for each parameter by itself as in T. Ben-Nun et al., "A Modular Benchmarking
    Infrastructure for High-Performance and Reproducible Deep Learning", IPDPS 2019, listing 7.
    """

    hyperparameter_names = ("learning_rate", "diameter", "gradient_bound")

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 1.0,
        diameter: float = 1.0,
        gradient_bound: float = 1.0,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: A factor of all steps, from 0.
            diameter: How far the minimum may be from the initial parameters, above 0.
            gradient_bound: Bound of the norm of the gradients, above 0.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.diameter = positive("diameter", diameter)
        self.gradient_bound = positive("gradient_bound", gradient_bound)
        self._inputs_seen = 0
        self._z: dict[str, Any] = {}
        self._squares: dict[str, Any] = {}

    @property
    def weight(self) -> float:
        r"""The weight :math:`\alpha_t` of the current step."""
        time = self._inputs_seen - 1
        return 1.0 if time <= 2 else (time + 1) / 4.0

    def new_input(self) -> None:
        """Go on to the weight of the next step."""
        super().new_input()
        self._inputs_seen += 1

    def prepare_param(self, param_name: str) -> None:
        """Set a parameter to the point at which the gradient is taken."""
        if param_name not in self._z:  # both sequences start at the parameter itself
            return
        share = 1.0 / self.weight
        (y,) = self.network.fetch_tensors([param_name])
        z = self.executor.to_numpy(self._z[param_name])
        self.network.feed_tensor(param_name, (share * z + (1.0 - share) * y).astype(y.dtype))

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        """Move both sequences by the gradient, and return the one of short steps."""
        weight = self.weight
        squares = self._squares.get(param_name, 0.0) + weight**2 * self.executor.tensor_functions.sum(grad * grad)
        self._squares[param_name] = squares
        numerator = 2.0 * float(self.learning_rate) * float(self.diameter)
        step = numerator / (squares + float(self.gradient_bound) ** 2) ** 0.5 * grad
        # At the first step z is the parameter: what it is set to then is its own value.
        self._z[param_name] = self._z.get(param_name, old_param) - weight * step
        return old_param - step
