"""TensorFlow's own optimizers (Keras), under the names that PyTorch's have as well.

Their formulas are Keras'; where these are not the ones of the optimizer of the same name in
``deep500.training.optimizers``, the class says how they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from deep500.core.counts import check_count
from deep500.core.errors import TrainingError
from deep500.frameworks.tensorflow._keras_optimizer import KerasOptimizer
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import flag, fraction, non_negative, positive
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "AMSGradOptimizer",
    "AdaGradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "GradientDescent",
    "KerasOptimizer",
    "LAMBOptimizer",
    "LionOptimizer",
    "MomentumOptimizer",
    "MuonOptimizer",
    "RMSPropOptimizer",
]


def _adam_arguments(beta1: float, beta2: float, epsilon: float) -> dict[str, Any]:
    """Return what Adam and its relatives take, by Keras' names."""
    return {
        "beta_1": fraction("beta1", beta1),
        "beta_2": fraction("beta2", beta2),
        "epsilon": positive("epsilon", epsilon),
    }


class GradientDescent(KerasOptimizer):
    r"""Stochastic gradient descent: :math:`w \leftarrow w - \eta g`."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        super().__init__(executor, loss, learning_rate, keras.optimizers.SGD, {}, **options)


class MomentumOptimizer(KerasOptimizer):
    r"""Gradient descent with momentum: :math:`m \leftarrow \mu m - \eta g`, :math:`w \leftarrow w + m`.

    With ``nesterov``, :math:`w \leftarrow w + \mu m - \eta g`. When the learning rate changes, it acts on what is added
    to :math:`m` from then on, not on the whole of it.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        nesterov: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {"momentum": fraction("momentum", momentum), "nesterov": flag("nesterov", nesterov)}
        super().__init__(executor, loss, learning_rate, keras.optimizers.SGD, arguments, **options)


class AdaGradOptimizer(KerasOptimizer):
    r"""AdaGrad, as TensorFlow computes it: :math:`w \leftarrow w - \eta g / \sqrt{G + \epsilon}`.

    The constant is added under the root; it has to be the square of another framework's to keep the same smallest
    divisor. Here its default is ``torch.optim.Adagrad``'s too, with a sum that starts from 0.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        epsilon: float = 1e-10,
        initial_accumulator: float = 0.0,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {
            "epsilon": positive("epsilon", epsilon),
            "initial_accumulator_value": non_negative("initial_accumulator", initial_accumulator),
        }
        super().__init__(executor, loss, learning_rate, keras.optimizers.Adagrad, arguments, **options)


class RMSPropOptimizer(KerasOptimizer):
    r"""RMSProp, as TensorFlow computes it.

    .. math::
        b \leftarrow \mu b + \eta g / \sqrt{v - \bar g^2 + \epsilon}, \qquad w \leftarrow w - b

    with :math:`\bar g = 0` unless it is centered. The constant is added under the root, as in A. Graves,
    arXiv:1308.0850, equation 40, and the learning rate acts on what is added to :math:`b`.
    """

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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {
            "rho": fraction("decay", decay),
            "epsilon": positive("epsilon", epsilon),
            "momentum": fraction("momentum", momentum),
            "centered": flag("centered", centered),
        }
        super().__init__(executor, loss, learning_rate, keras.optimizers.RMSprop, arguments, **options)


class AdamOptimizer(KerasOptimizer):
    r"""Adam, as TensorFlow computes it.

    .. math:: w \leftarrow w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    :math:`\epsilon` stands as in the paragraph before section 2.1 of the paper (TensorFlow's choice), not as in
    algorithm 1: it is not divided by the correction of the second moment's bias.

    Source: D. P. Kingma, J. Ba, "Adam", ICLR 2015.
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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = _adam_arguments(beta1, beta2, epsilon)
        super().__init__(executor, loss, learning_rate, keras.optimizers.Adam, arguments, **options)


class AdamWOptimizer(KerasOptimizer):
    r"""AdamW, as TensorFlow computes it: weights decay, then :class:`AdamOptimizer`'s step.

    .. math:: w \leftarrow (1 - \eta\lambda) w

    The decay :math:`\lambda` is the option ``weight_decay``, 0.01 by default.
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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        options.setdefault("weight_decay", 0.01)
        # The decay is what all optimizers share, which is Keras' own formula.
        arguments = {**_adam_arguments(beta1, beta2, epsilon), "weight_decay": 0.0}
        super().__init__(executor, loss, learning_rate, keras.optimizers.AdamW, arguments, **options)


class AMSGradOptimizer(KerasOptimizer):
    r"""AMSGrad, as TensorFlow computes it: :class:`AdamOptimizer` with the largest :math:`v` so far.

    The bias is corrected; the paper's algorithm does not. :math:`\epsilon` stands as in :class:`AdamOptimizer`.
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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {**_adam_arguments(beta1, beta2, epsilon), "amsgrad": True}
        super().__init__(executor, loss, learning_rate, keras.optimizers.Adam, arguments, **options)


class LionOptimizer(KerasOptimizer):
    r"""Lion, as the paper has it; the decay is the option ``weight_decay``."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 1e-4,
        beta1: float = 0.9,
        beta2: float = 0.99,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {"beta_1": positive("beta1", fraction("beta1", beta1)), "beta_2": fraction("beta2", beta2)}
        super().__init__(executor, loss, learning_rate, keras.optimizers.Lion, arguments, **options)


class LAMBOptimizer(KerasOptimizer):
    r"""LAMB, as TensorFlow computes it: weights decay before, apart from the trust ratio.

    .. math::
        w \leftarrow (1 - \eta\lambda) w, \qquad r = \hat m / (\sqrt{\hat v} + \epsilon), \qquad
        w \leftarrow w - \eta \frac{\|w\|}{\|r\|} r

    The decay is the option ``weight_decay``, 0.01 by default. In the paper it is part of :math:`r`.
    """

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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        options.setdefault("weight_decay", 0.01)
        arguments = _adam_arguments(beta1, beta2, epsilon)
        super().__init__(executor, loss, learning_rate, keras.optimizers.Lamb, arguments, **options)


class FittedMuon(keras.optimizers.Muon):  # type: ignore[misc] # Keras has no types
    """Keras' Muon with the authors' factor for matrices of more rows than columns, in place of Moonlight's."""

    def lr_adjust(self, x: Any) -> Any:
        """Return an update of a matrix, fitted to its shape."""
        rows, columns = x.shape
        return x * max(1.0, rows / columns) ** 0.5


class MuonOptimizer(KerasOptimizer):
    r"""``keras.optimizers.Muon`` for matrices; its AdamW for the other parameters, kernels among them.

    AdamW is TensorFlow's, see :class:`AdamWOptimizer`, with the step size ``adam_ratio * learning_rate``; the option
    ``weight_decay`` makes all parameters decay by ``learning_rate * weight_decay``.
    """

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
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {
            "momentum": fraction("momentum", momentum),
            "nesterov": flag("nesterov", nesterov),
            "ns_steps": check_count("iterations", iterations, least=1, error=TrainingError),
            "adam_lr_ratio": non_negative("adam_ratio", adam_ratio),
            "adam_beta_1": fraction("beta1", beta1),
            "adam_beta_2": fraction("beta2", beta2),
            "epsilon": positive("epsilon", epsilon),
            "exclude_embeddings": False,
            "weight_decay": None,
            "adam_weight_decay": None,
        }
        super().__init__(executor, loss, learning_rate, FittedMuon, arguments, **options)
