"""A step of an optimizer, as a graph, on gradients that come from outside of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorflow as tf
from numpy.typing import NDArray

from deep500.distributed.flat_buffers import FlatBuffer
from deep500.frameworks.tensorflow._flat_call import flat_call
from deep500.frameworks.tensorflow.buckets import ExchangedGradients
from deep500.networks.graph_executor import GraphExecutor

if TYPE_CHECKING:
    from deep500.frameworks.tensorflow._parameter_updates import TracedStep
    from deep500.frameworks.tensorflow.executor import TensorFlowExecutor

__all__ = ["AppliedStep", "FlatGradients", "SeparateGradients", "fed_gradients"]

#: Returns the gradients by name, as they are held, from what a graph is given.
Unpacking: TypeAlias = Callable[[Sequence[tf.Tensor]], dict[str, tf.Tensor]]


class SeparateGradients:
    """Gradients that are given one by one, as they are held.

    Attributes:
        names: Their names.
        key: What the graph depends on.
    """

    def __init__(self, gradients: Mapping[str, Any]) -> None:
        """Take the gradients by name."""
        self._gradients = {name: tf.convert_to_tensor(gradient) for name, gradient in gradients.items()}
        self.names = tuple(gradients)
        self.key = ("one by one", self.names)

    def signature(self) -> list[tf.TensorSpec]:
        """Return the types of the arguments."""
        return [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in self._gradients.values()]

    def arguments(self) -> list[tf.Tensor]:
        """Return the arguments of a call."""
        return list(self._gradients.values())

    def unpacking(self) -> Unpacking:
        """Return what gives the gradients by name, in the graph."""
        names = self.names  # and not the gradients, which would be kept with the graph
        return lambda arguments: dict(zip(names, arguments, strict=True))


class FlatGradients:
    """Gradients that are given as the flat buffers in which they stand, in the declared layout.

    Attributes:
        names: Their names.
        key: What the graph depends on.
    """

    def __init__(self, gradients: ExchangedGradients) -> None:
        """Take gradients that stand in buffers."""
        self._gradients = gradients
        self._buffers: list[FlatBuffer] = list(gradients.buffers)
        self.names = tuple(gradients)
        self.key = ("in buffers", self.names, tuple(tuple(buffer.starts.items()) for buffer in self._buffers))

    def signature(self) -> list[tf.TensorSpec]:
        """Return the types of the arguments."""
        return [tf.TensorSpec(buffer.array.shape, buffer.array.dtype) for buffer in self._buffers]

    def arguments(self) -> list[tf.Tensor]:
        """Return the arguments of a call, of the buffers' own memory."""
        return [_shared_tensor(buffer.array) for buffer in self._buffers]

    def unpacking(self) -> Unpacking:
        """Return what gives the gradients by name, in the graph, as they are held.

        Each is a copy: an optimizer may keep it, and the buffers' memory is used again.
        """
        return self._unpack

    def _unpack(self, arguments: Sequence[tf.Tensor]) -> dict[str, tf.Tensor]:
        parts: dict[str, tf.Tensor] = {}
        for buffer, flat in zip(self._buffers, arguments, strict=True):
            views = buffer.views
            # Parts that begin where TensorFlow wants it would share the memory of the whole.
            pieces = tf.split(tf.raw_ops.DeepCopy(x=flat), [view.size for view in views.values()])
            for (name, view), piece in zip(views.items(), pieces, strict=True):
                parts[name] = tf.reshape(piece, view.shape)
        return {name: self._gradients.held(name, parts[name]) for name in self.names}


class AppliedStep:
    """One ``tf.function`` of an optimizer's step on given gradients."""

    def __init__(
        self,
        step: TracedStep,
        gradients: SeparateGradients | FlatGradients,
        variables: Mapping[str, tf.Variable],
        device: str,
    ) -> None:
        """Trace the function.

        Args:
            step: The step.
            gradients: The gradients of the first call.
            variables: The parameters by name.
            device: TensorFlow's name of the device.
        """
        traced = copy.copy(step)  # a graph that has the network too takes its own note of the active parameters
        self._step = step
        unpack = gradients.unpacking()

        def run(*arguments: tf.Tensor) -> None:
            count = len(arguments) - (step.numbers is not None)
            with tf.device(device):
                found = unpack(arguments[:count])
                traced(found, {name: variables[name] for name in found}, *arguments[count:])

        signature = gradients.signature()
        if step.numbers is not None:
            signature.append(tf.TensorSpec(step.numbers().shape, tf.float64))
        self._call = flat_call(tf.function(run, input_signature=signature, autograph=False).get_concrete_function())

    def __call__(self, gradients: SeparateGradients | FlatGradients) -> None:
        """Update the parameters."""
        arguments = gradients.arguments()
        if self._step.numbers is not None:
            arguments.append(tf.constant(self._step.numbers()))
        self._call(*arguments)


def fed_gradients(
    source: GraphExecutor, own: TensorFlowExecutor, names: Sequence[str]
) -> SeparateGradients | FlatGradients:
    """Return the gradients by parameters as a graph is fed with them.

    Args:
        source: Has the gradients.
        own: Holds the parameters.
        names: The parameters.
    """
    exchanged = own.exchanged_gradients() if source is own else None
    if exchanged is not None:
        return FlatGradients(exchanged)
    found = {name: source.gradient_tensor(name) for name in names}
    return SeparateGradients({name: gradient for name, gradient in found.items() if gradient is not None})


def _shared_tensor(array: NDArray[Any]) -> tf.Tensor:
    """Return a tensor whose memory is the array's, which begins where TensorFlow wants it."""
    try:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    except (BufferError, tf.errors.OpError):  # a type that DLPack does not know, such as bfloat16
        return tf.constant(array)
