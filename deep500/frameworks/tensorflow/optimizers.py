"""TensorFlow's own optimizers (Keras), each step one ``tf.function``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from deep500.core.errors import TrainingError
from deep500.frameworks.tensorflow.executor import TensorFlowExecutor
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import fraction, non_negative, positive
from deep500.training.optimizer import GradientModifier, Optimizer

__all__ = ["AdamOptimizer", "GradientDescent", "KerasOptimizer", "MomentumOptimizer"]


class KerasOptimizer(Optimizer):
    """A Keras optimizer that updates the parameters of a TensorFlow executor.

    A step is one ``tf.function``: forward, backward, state updates, gradient modifier and update. The modifier is
    traced once, so it has to be written in TensorFlow's operations (or Python's operators on tensors), and it sees the
    kernels of convolutions as TensorFlow holds them, ``[spatial..., I, O]``.

    Attributes:
        keras_optimizer: The Keras optimizer; its variables hold its state.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str,
        learning_rate: float,
        gradient_modifier: GradientModifier | None,
        kind: Any,
        **arguments: float,
    ) -> None:
        """Attach a Keras optimizer to an executor.

        Args:
            executor: A TensorFlow executor.
            loss: Name of a scalar output of the network.
            learning_rate: Step size.
            gradient_modifier: Changes each gradient before it is used; see :class:`Optimizer`.
            kind: Class of the Keras optimizer.
            **arguments: Its further arguments.

        Raises:
            TrainingError: The executor is not TensorFlow's, the network has no such loss, Keras runs on another
                framework, or the learning rate is not a finite number from 0.
        """
        if isinstance(executor, GraphExecutor) and not isinstance(executor, TensorFlowExecutor):
            raise TrainingError(
                f"{type(self).__name__} is TensorFlow's own optimizer and needs a TensorFlow executor; received one of "
                f"{executor.framework}. Use the optimizer of deep500.frameworks.{executor.framework} or one of "
                f"deep500.training.optimizers, or make the executor with deep500.frameworks.tensorflow.from_model."
            )
        if keras.backend.backend() != "tensorflow":
            raise TrainingError(
                f"Keras is set to run on {keras.backend.backend()!r}, and TensorFlow's optimizers need it on "
                f"'tensorflow'. Set KERAS_BACKEND=tensorflow before Python starts."
            )
        super().__init__(executor, loss, gradient_modifier=gradient_modifier)
        self.executor: TensorFlowExecutor = executor
        parameters = [executor.stored_tensor(name) for name in self.network.parameters]
        # Keras rounds its arguments to float32, too coarse for a float64 network: it is given a learning rate that is
        # read from a variable of ours, and NumPy's numbers, which keep their dtype where Python's do not.
        dtype = tf.float64 if all(p.dtype == tf.float64 for p in parameters) else tf.float32
        if dtype == tf.float64:
            arguments = {name: np.float64(value) for name, value in arguments.items()}
        with tf.device(executor.tensorflow_device):
            self._learning_rate = tf.Variable(
                non_negative("learning_rate", learning_rate), dtype=dtype, trainable=False
            )
            self.keras_optimizer = kind(learning_rate=self._learning_rate.read_value, **arguments)
            self.keras_optimizer.build(parameters)

    @property
    def learning_rate(self) -> float:
        """Step size; it may be changed between steps."""
        return float(self._learning_rate.numpy())

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._learning_rate.assign(non_negative("learning_rate", value))

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Train on one minibatch; see :meth:`Optimizer.step`."""
        return self.executor.train(inputs, self.loss, self._update)

    def _update(self, gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable]) -> None:
        modified = [self._modified(gradients[name], variable, name) for name, variable in parameters.items()]
        self.keras_optimizer.apply(modified, list(parameters.values()))

    def _modified(self, gradient: tf.Tensor, variable: tf.Variable, name: str) -> tf.Tensor:
        if self.gradient_modifier is None:
            return gradient
        value = self.gradient_modifier(gradient, tf.convert_to_tensor(variable), name)
        expected = f"it must return a gradient {gradient.dtype.name}{gradient.shape}"
        if value is None:
            raise TrainingError(f"gradient_modifier returned nothing for parameter {name!r}; {expected}.")
        try:
            modified = tf.convert_to_tensor(value, gradient.dtype)
        except (TypeError, ValueError, tf.errors.OpError) as error:
            raise TrainingError(
                f"gradient_modifier returned {type(value).__name__} for parameter {name!r}; {expected}: {error}"
            ) from error
        if not gradient.shape.is_compatible_with(modified.shape):
            raise TrainingError(
                f"gradient_modifier returned shape {modified.shape} for parameter {name!r}; {expected}."
            )
        return modified


class GradientDescent(KerasOptimizer):
    r"""Stochastic gradient descent: :math:`w \leftarrow w - \eta g`."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.1,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        super().__init__(executor, loss, learning_rate, gradient_modifier, keras.optimizers.SGD)


class MomentumOptimizer(KerasOptimizer):
    r"""Gradient descent with momentum: :math:`m \leftarrow \mu m - \eta g`, :math:`w \leftarrow w + m`."""

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {"momentum": fraction("momentum", momentum)}
        super().__init__(executor, loss, learning_rate, gradient_modifier, keras.optimizers.SGD, **arguments)


class AdamOptimizer(KerasOptimizer):
    r"""Adam, as TensorFlow computes it.

    .. math:: w \leftarrow w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt{v} + \epsilon}

    Source: D. P. Kingma, J. Ba, "Adam", ICLR 2015; :math:`\epsilon` stands as in the paragraph before section 2.1
    (TensorFlow's choice), not as in algorithm 1.
    """

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str = "loss",
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        *,
        gradient_modifier: GradientModifier | None = None,
    ) -> None:
        """Attach to an executor; see :class:`KerasOptimizer`."""
        arguments = {
            "beta_1": fraction("beta1", beta1),
            "beta_2": fraction("beta2", beta2),
            "epsilon": positive("epsilon", epsilon),
        }
        super().__init__(executor, loss, learning_rate, gradient_modifier, keras.optimizers.Adam, **arguments)
