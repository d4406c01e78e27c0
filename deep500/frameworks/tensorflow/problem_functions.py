"""How TensorFlow computes the problems of problem sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.device import CPUDevice, Device
from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.tensorflow._layout import channels_first_order, channels_last_order, kernel_order
from deep500.frameworks.tensorflow.device import device_name, synchronize
from deep500.operators.problems import ConvolutionProblem, GemmProblem, NativeProblem, Problem, RecurrentProblem

__all__ = ["problem_function"]

#: A function, the arrays that it takes in TensorFlow's layout, and the order of its output's dimensions as the problem
#: has them.
_Call = tuple[Callable[..., Any], tuple[NDArray[Any], ...], tuple[int, ...]]


def problem_function(problem: Problem, arrays: Mapping[str, NDArray[Any]], device: Device) -> NativeProblem:
    """Return how TensorFlow computes a problem.

    These are ``tf.matmul`` (which is told what is transposed) and ``tf.nn.conv2d`` eagerly, with the channels last, as
    TensorFlow's processor kernels want them; and Keras' ``SimpleRNN``, ``LSTM`` and ``GRU``, batch first, in a
    ``tf.function``, as recurrent layers are used.

    Args:
        problem: The problem.
        arrays: Its inputs, by name; they are copied.
        device: Where to run.

    Raises:
        DeviceError: TensorFlow does not see the device.
        UnsupportedOperatorError: TensorFlow has no such function here.
    """
    place = device_name(device)
    make = _MAKERS.get(type(problem))
    if make is None:
        raise UnsupportedOperatorError(
            f"TensorFlow has no function here for {type(problem).__name__} ({problem.title})."
        )
    with tf.device(place):
        function, own, order = make(problem, arrays)
        inputs = tuple(tf.constant(np.ascontiguousarray(array)) for array in own)

    def to_numpy(output: Any) -> NDArray[Any]:
        return np.asarray(output.numpy().transpose(order))

    return NativeProblem(
        function, inputs, to_numpy, None if isinstance(device, CPUDevice) else functools.partial(synchronize, device)
    )


def _matrix_product(problem: GemmProblem, arrays: Mapping[str, NDArray[Any]]) -> _Call:
    transposed = {"transpose_a": problem.a_transposed, "transpose_b": problem.b_transposed}
    named = {name: True for name, value in transposed.items() if value}
    function = functools.partial(tf.matmul, **named) if named else tf.matmul
    return function, (arrays["A"], arrays["B"]), (0, 1)


def _convolution(problem: ConvolutionProblem, arrays: Mapping[str, NDArray[Any]]) -> _Call:
    pads = (problem.pad_height, problem.pad_width)
    padding: Any = [[0, 0], *([pad, pad] for pad in pads), [0, 0]] if any(pads) else "VALID"
    function = functools.partial(tf.nn.conv2d, strides=(problem.stride_height, problem.stride_width), padding=padding)
    image = arrays["X"].transpose(channels_last_order(4))
    return function, (image, arrays["W"].transpose(kernel_order(4))), channels_first_order(4)


def _recurrent_layer(problem: RecurrentProblem, arrays: Mapping[str, NDArray[Any]]) -> _Call:
    x, (input_bias, state_bias) = arrays["X"].transpose(1, 0, 2), arrays["B"]
    weights, bias = (arrays["W"], arrays["R"]), input_bias + state_bias
    if problem.cell == "gru":  # Keras has the update gate first, and both biases
        weights = (_update_first(weights[0]), _update_first(weights[1]))
        bias = np.stack([_update_first(input_bias), _update_first(state_bias)])
    layer = _LAYERS[problem.cell](problem.hidden_size, return_sequences=True, dtype=x.dtype.name)
    layer.build(x.shape)
    rest = [variable.value for variable in layer.non_trainable_variables]  # states of random numbers that nobody draws

    @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
    def recurrent_layer(x: Any, *weights: Any) -> Any:
        return layer.stateless_call(weights, rest, x)[0]

    return recurrent_layer, (x, weights[0].T, weights[1].T, bias), (1, 0, 2)


def _update_first(array: NDArray[Any]) -> NDArray[Any]:
    """Return weights or biases of the gates reset, update, new in the order update, reset, new."""
    reset, update, new = np.split(array, 3)
    return np.concatenate([update, reset, new])


_MAKERS: dict[type[Problem], Callable[[Any, Mapping[str, NDArray[Any]]], _Call]] = {
    GemmProblem: _matrix_product,
    ConvolutionProblem: _convolution,
    RecurrentProblem: _recurrent_layer,
}

_LAYERS: dict[str, Callable[..., Any]] = {
    "vanilla": functools.partial(tf.keras.layers.SimpleRNN, activation="relu"),
    "lstm": tf.keras.layers.LSTM,
    "gru": tf.keras.layers.GRU,
}
