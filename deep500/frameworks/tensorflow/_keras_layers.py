"""Layers of Keras in the form that their export is to see."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from deep500.core.errors import InvalidNetworkError

__all__ = ["exportable_layers", "normalising_layers"]


def normalising_layers(model: Any) -> list[Any]:
    """Return the BatchNormalization layers of a model whose statistics change in training: those that are not frozen.

    Raises:
        InvalidNetworkError: One has weights of a dtype that TensorFlow's one operation for it does not know.
    """
    layers = [x for x in model._flatten_layers() if isinstance(x, keras.layers.BatchNormalization) and x.trainable]
    for layer in layers:
        dtype = keras.backend.standardize_dtype(layer.moving_mean.dtype)
        if dtype not in ("float32", "bfloat16"):
            raise InvalidNetworkError(
                f"The layer {layer.name!r} of the Keras model {model.name!r} is a BatchNormalization with weights of "
                f"{dtype}; accepted are float32 and bfloat16. Build the model in float32, and change the network's "
                f"precision (deep500.networks.transforms.precision)."
            )
    return layers


@contextlib.contextmanager
def exportable_layers(model: Any) -> Iterator[None]:
    """Let BatchNormalization and grouped convolutions be one operation each."""
    layers = normalising_layers(model)
    convolutions = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)
    grouped = [layer for layer in model._flatten_layers() if isinstance(layer, convolutions) and layer.groups > 1]
    try:
        for layer in layers:
            layer.call = _fused(layer)
        for layer in grouped:
            layer.convolution_op = _inline(layer)
        yield
    finally:
        for layer in layers:
            vars(layer).pop("call", None)
        for layer in grouped:
            vars(layer).pop("convolution_op", None)


def _inline(layer: Any) -> Callable[..., Any]:
    """Return a grouped convolution that is not a call of a compiled function, as Keras' own is, but the operation."""

    def convolution_op(inputs: Any, kernel: Any) -> Any:
        return tf.nn.convolution(
            inputs,
            kernel,
            strides=list(layer.strides),
            padding="VALID" if layer.padding == "causal" else layer.padding.upper(),  # causal: padded before
            data_format=None if layer.data_format == "channels_last" else "NC" + "DHW"[-layer.rank :],
            dilations=list(layer.dilation_rate),
        )

    return convolution_op


def _fused(layer: Any) -> Callable[..., Any]:
    """Return BatchNormalization in inference as TensorFlow's one operation, which ONNX has as well.

    Keras' own is its arithmetic, of which nothing would say that training has other statistics.
    """

    def call(inputs: Any, training: Any = None, mask: Any = None) -> Any:
        rank = len(inputs.shape)
        axis = layer.axis % rank
        if rank == 4 and axis == 1:
            return _normalised(layer, inputs, "NCHW")
        order = [*(i for i in range(rank) if i != axis), axis]
        moved = inputs if axis == rank - 1 else tf.transpose(inputs, order)
        images = moved if rank == 4 else tf.reshape(moved, [-1, 1, 1, inputs.shape[axis]])
        normalised = _normalised(layer, images, "NHWC")
        normalised = normalised if rank == 4 else tf.reshape(normalised, tf.shape(moved))
        return normalised if axis == rank - 1 else tf.transpose(normalised, [int(i) for i in np.argsort(order)])

    return call


def _normalised(layer: Any, images: Any, data_format: str) -> Any:
    channels = images.shape[data_format.index("C")]
    normalised, _, _ = tf.compat.v1.nn.fused_batch_norm(
        images,
        tf.convert_to_tensor(layer.gamma) if layer.scale else tf.ones([channels], images.dtype),
        tf.convert_to_tensor(layer.beta) if layer.center else tf.zeros([channels], images.dtype),
        tf.convert_to_tensor(layer.moving_mean),
        tf.convert_to_tensor(layer.moving_variance),
        epsilon=layer.epsilon,
        data_format=data_format,
        is_training=False,
    )
    return normalised
