"""The training loops that a TensorFlow user has for data in memory: a ``tf.function`` a step, and Keras' ``fit``.

Images are ``[H, W, C]``, as TensorFlow wants them.
"""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from benchmarks.native.tensorflow import MODELS

__all__ = ["epoch_by_fit", "epoch_by_hand"]

Epoch = Callable[[], float]


def epoch_by_hand(
    model: str, images: np.ndarray, labels: np.ndarray, batch_size: int, rate: float, momentum: float
) -> Epoch:
    """Return a function that trains for an epoch in random order and returns the mean loss, read once in the end."""
    network = MODELS[model](images.shape[1:], int(labels.max()) + 1)
    optimizer = keras.optimizers.SGD(learning_rate=rate, momentum=momentum)
    optimizer.build(network.trainable_variables)
    x, y = np.ascontiguousarray(images.transpose(0, 2, 3, 1)), labels
    stream = np.random.default_rng(0)

    @tf.function(input_signature=[tf.TensorSpec((None, *x.shape[1:]), tf.float32), tf.TensorSpec((None,), tf.int64)])
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, network(x)))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    def epoch() -> float:
        losses = []
        order = stream.permutation(len(x))
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            losses.append(step(tf.constant(x[chosen]), tf.constant(y[chosen])))
        return float(tf.reduce_mean(tf.stack(losses)))

    return epoch


def epoch_by_fit(
    model: str, images: np.ndarray, labels: np.ndarray, batch_size: int, rate: float, momentum: float
) -> Epoch:
    """Return a function that trains for an epoch by Keras' ``fit``, with its defaults."""
    x = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    network = {"lenet": _lenet, "resnet8": _resnet8}[model](x.shape[1:], int(labels.max()) + 1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile(keras.optimizers.SGD(learning_rate=rate, momentum=momentum), loss)

    def epoch() -> float:
        return float(network.fit(x, labels, batch_size, epochs=1, verbose=0).history["loss"][0])

    return epoch


def _lenet(shape: tuple[int, ...], classes: int) -> keras.Model:
    stages = [
        layer
        for filters in (6, 16)
        for layer in (layers.Conv2D(filters, 5, padding="same", activation="relu"), layers.MaxPooling2D(2))
    ]
    dense = [layers.Dense(size, activation="relu") for size in (120, 84)]
    return keras.Sequential([keras.Input(shape), *stages, layers.Flatten(), *dense, layers.Dense(classes)])


def _unit(x: keras.KerasTensor, filters: int, size: int, stride: int) -> keras.KerasTensor:
    x = layers.Conv2D(filters, size, stride, "same", use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def _resnet8(shape: tuple[int, ...], classes: int) -> keras.Model:
    inputs = keras.Input(shape)
    x = layers.ReLU()(_unit(inputs, 16, 3, 1))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        y = _unit(layers.ReLU()(_unit(x, filters, 3, stride)), filters, 3, 1)
        x = layers.ReLU()(layers.Add()([y, x if stride == 1 else _unit(x, filters, 1, stride)]))
    return keras.Model(inputs, layers.Dense(classes)(layers.GlobalAveragePooling2D()(x)))
