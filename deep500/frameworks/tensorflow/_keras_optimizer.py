"""The base of TensorFlow's own optimizers (Keras), each step one ``tf.function``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from deep500.core.errors import CheckpointError, TrainingError
from deep500.frameworks.tensorflow.executor import TensorFlowExecutor
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.hyperparameters import non_negative
from deep500.training.optimizer import Optimizer
from deep500.training.optimizer_options import OptimizerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["KerasOptimizer"]


class KerasOptimizer(Optimizer):
    """A Keras optimizer that updates the parameters of a TensorFlow executor.

    A step is one ``tf.function``: forward, backward, state updates, options and update. The gradient modifier is traced
    once, so it has to be written in TensorFlow's operations (or Python's operators on tensors).

    Of the hyperparameters the learning rate can change; Keras makes the others part of the graph. Groups of parameters
    can differ in ``weight_decay`` alone.

    Attributes:
        keras_optimizer: The Keras optimizer; its variables hold its state.
    """

    hyperparameter_names = ("learning_rate",)

    def __init__(
        self,
        executor: GraphExecutor,
        loss: str,
        learning_rate: float,
        kind: Any,
        arguments: Mapping[str, Any],
        **options: Unpack[OptimizerOptions],
    ) -> None:
        """Attach a Keras optimizer to an executor.

        Args:
            executor: A TensorFlow executor.
            loss: Name of a scalar output of the network.
            learning_rate: Step size.
            kind: Class of the Keras optimizer.
            arguments: Its further arguments.
            **options: See :class:`OptimizerOptions`.

        Raises:
            TrainingError: The executor is not TensorFlow's, the network has no such loss, Keras runs on another
                framework, the learning rate is not a finite number from 0, or an option is not accepted.
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
        super().__init__(executor, loss, **options)
        self._check_groups()
        self.executor: TensorFlowExecutor = executor
        parameters = [executor.stored_tensor(name) for name in self.network.parameters]
        # Keras rounds its arguments to float32, too coarse for a float64 network: it is given a learning rate that is
        # read from a variable of ours, and NumPy's numbers, which keep their dtype where Python's do not.
        dtype = tf.float64 if all(p.dtype == tf.float64 for p in parameters) else tf.float32
        if dtype == tf.float64:
            arguments = {n: np.float64(v) if type(v) is float else v for n, v in arguments.items()}
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
        return self.executor.training_step(inputs, self.loss, self.updates)

    def apply_gradients(self) -> None:
        """Update with the gradients that the executor has, unless more minibatches are awaited."""
        self.updates.apply()

    def apply_traced(self, gradients: Mapping[str, tf.Tensor], parameters: Mapping[str, tf.Variable]) -> None:
        """Update the parameters by Keras, in the graph of a step."""
        self.keras_optimizer.apply(list(gradients.values()), [parameters[name] for name in gradients])

    def _check_groups(self) -> None:
        for values in self._groups.values:
            for name in values:
                if name == "learning_rate":
                    raise TrainingError(
                        f"A Keras optimizer has one learning rate for all parameters, and parameter_groups of "
                        f"{type(self).__name__} sets another; accepted is weight_decay. Use the optimizer of the same "
                        f"name in deep500.training.optimizers."
                    )

    def _attributes(self) -> dict[str, Any]:
        return {"variables": [np.array(variable.numpy()) for variable in self._state_variables()]}

    def _state_variables(self) -> list[Any]:
        """Return the variables of the Keras optimizer, in the order in which it made them, but not the parameters."""
        return list(self.keras_optimizer.variables)

    def _checked_attributes(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        values = saved.get("variables", [])
        expected = [(v.dtype, tuple(v.shape)) for v in self._state_variables()]
        received = [(v.dtype.name, v.shape) for v in values]
        if received != expected:
            raise CheckpointError(
                f"The checkpoint has {len(received)} variables of {type(self).__name__} that do not fit the "
                f"{len(expected)} of this one in dtype and shape. Restore it with the network and the optimizer that "
                f"were used."
            )
        return {"variables": values}

    def _set_attributes(self, values: Mapping[str, Any]) -> None:
        for variable, value in zip(self._state_variables(), values["variables"], strict=True):
            variable.assign(value)
