"""Muon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative, positive
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.optimizers._moments import moment_scalars, moments

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MuonOptimizer"]

#: Coefficients of the quintic iteration, chosen for a steep slope at 0.
_A, _B, _C = 3.4445, -4.7750, 2.0315

#: Keeps the norm that a matrix is divided by from 0.
_SMALLEST_NORM = 1e-7


class MuonOptimizer(UpdateRuleOptimizer):
    r"""Muon: momentum, made orthogonal, for matrices and kernels; AdamW for the other parameters.

    .. math::
        B_t &= \mu B_{t-1} + G_t, \qquad B_0 = 0 \\
        O_t &= \operatorname{NewtonSchulz}(G_t + \mu B_t) & \text{(with nesterov; else of } B_t) \\
        \Theta_t &= \Theta_{t-1} - \alpha (\sqrt{\max(1, m / n)} \, O_t + \lambda \Theta_{t-1})

    where the gradient :math:`G_t` is the matrix ``[m, n]``: a kernel ``[O, I, ...]`` is taken as ``[O, I * ...]``.
    Newton-Schulz divides by the Frobenius norm and repeats

    .. math:: A = X X^T, \qquad X \leftarrow 3.4445 X - 4.7750 A X + 2.0315 A A X

    which makes all singular values nearly 1. It computes in the dtype of the network, where the authors' program takes
    bfloat16. Parameters of rank 0 and 1 are given AdamW's step with the rate :math:`r \alpha`; so are the matrices that
    a group of parameters says are not orthogonal, which the authors advise for embeddings and the last layer:
    ``parameter_groups=[("classifier.*", {"orthogonal": 0.0})]``.

    Attributes:
        learning_rate: The step size :math:`\alpha`; it may be changed between steps.
        momentum: The momentum :math:`\mu`.
        nesterov: Whether the momentum looks ahead.
        iterations: Number of iterations of Newton and Schulz.
        weight_decay: The decay :math:`\lambda`, part of both formulas here.
        adam_ratio: Ratio :math:`r` of AdamW's step size to this one.
        beta1: Decay of AdamW's first moment.
        beta2: Decay of AdamW's second moment.
        epsilon: The constant of AdamW's divisor.
        orthogonal: Whether matrices are given Muon's step, 1 or 0; groups of parameters may have 0, for AdamW's.

    Source: K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
    https://kellerjordan.github.io/posts/muon/; AdamW's numbers are those of the authors' program (its step size is 3e-4
    where this one is 0.02).
    """

    hyperparameter_names = (
        "learning_rate",
        "momentum",
        "weight_decay",
        "adam_ratio",
        "beta1",
        "beta2",
        "epsilon",
        "orthogonal",
    )
    slots = ("first", "second")
    decays_weights = False

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        adam_ratio: float = 0.015,
        beta1: float = 0.9,
        beta2: float = 0.95,
        epsilon: float = 1e-10,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`deep500.training.optimizer.Optimizer`.

        Args:
            executor: What runs the network.
            loss: Name of a scalar output of the network.
            learning_rate: The step size, from 0.
            momentum: The momentum, from 0 to below 1.
            nesterov: Whether the momentum looks ahead.
            iterations: Number of iterations of Newton and Schulz, from 1.
            adam_ratio: Ratio of AdamW's step size to this one, from 0.
            beta1: Decay of AdamW's first moment, from 0 to below 1.
            beta2: Decay of AdamW's second moment, from 0 to below 1.
            epsilon: Keeps AdamW's divisor from 0, above 0.
            **options: See :class:`deep500.training.optimizer_options.OptimizerOptions`.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(executor, loss, **options)
        self.learning_rate = non_negative("learning_rate", learning_rate)
        self.momentum = fraction("momentum", momentum)
        self.nesterov = flag("nesterov", nesterov)
        self.iterations = check_count("iterations", iterations, least=1, error=TrainingError)
        self.adam_ratio = non_negative("adam_ratio", adam_ratio)
        self.beta1 = fraction("beta1", beta1)
        self.beta2 = fraction("beta2", beta2)
        self.epsilon = positive("epsilon", epsilon)
        self.orthogonal = 1.0
        self._has_other_matrices = any("orthogonal" in values for values in self._groups.values)

    def scalars(self, step: int) -> dict[str, float]:
        """Return the numbers of both rules."""
        adam_rate = float(self.learning_rate) * float(self.adam_ratio)
        numbers = moment_scalars(adam_rate, self.beta1, self.beta2, self.epsilon, step)
        return {
            **numbers,
            "kept": 1.0 - adam_rate * float(self.weight_decay),
            "orthogonal": float(self.orthogonal),
            "orthogonal_rate": float(self.learning_rate),
            "orthogonal_kept": 1.0 - float(self.learning_rate) * float(self.weight_decay),
            "momentum": float(self.momentum),
        }

    def update(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the parameter moved by its orthogonal momentum, or by AdamW where it is no matrix."""
        if len(parameter.shape) < 2:
            return self._adamw(gradient, parameter, slots, scalars)
        if not self._has_other_matrices:
            return self._muon(gradient, parameter, slots, scalars)
        is_orthogonal = scalars["orthogonal"]
        if isinstance(is_orthogonal, float):
            return (self._muon if is_orthogonal else self._adamw)(gradient, parameter, slots, scalars)
        # A traced step has no values yet: it computes both.
        moved, following = self._muon(gradient, parameter, slots, scalars)
        other, other_following = self._adamw(gradient, parameter, slots, scalars)
        where = self.functions.where
        chosen = {slot: where(is_orthogonal > 0, following[slot], other_following[slot]) for slot in self.slots}
        return where(is_orthogonal > 0, moved, other), chosen

    def _muon(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        momentum = scalars["momentum"] * slots["first"] + gradient
        ahead = gradient + scalars["momentum"] * momentum if self.nesterov else momentum
        moved = scalars["orthogonal_kept"] * parameter - scalars["orthogonal_rate"] * self._orthogonal(ahead)
        return moved, {"first": momentum, "second": slots["second"]}

    def _adamw(
        self, gradient: Any, parameter: Any, slots: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        first, second = moments(gradient, slots, scalars)
        step = scalars["rate"] * first / (self.functions.sqrt(second) + scalars["epsilon"])
        return scalars["kept"] * parameter - step, {"first": first, "second": second}

    def _orthogonal(self, x: Any) -> Any:
        """Return a matrix or kernel with all singular values near one number, which fits its shape."""
        shape = [int(size) for size in x.shape]
        rows, columns = shape[0], math.prod(shape[1:])
        if not rows * columns:
            return x
        functions = self.functions
        matrix = functions.reshape(x, (rows, columns))
        if rows > columns:
            matrix = functions.transpose(matrix, (1, 0))
        matrix = matrix / (functions.norm(matrix) + _SMALLEST_NORM)
        for _ in range(self.iterations):
            gram = functions.matmul(matrix, functions.transpose(matrix, (1, 0)))
            matrix = _A * matrix + functions.matmul(_B * gram + _C * functions.matmul(gram, gram), matrix)
        if rows > columns:
            matrix = functions.transpose(matrix, (1, 0))
        return max(1.0, rows / columns) ** 0.5 * functions.reshape(matrix, shape)
