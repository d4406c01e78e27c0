"""LeNet and ResNet-8 as a TensorFlow user writes them (NHWC, one ``tf.function`` a step), and their training step."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def lenet(shape: tuple[int, int, int], classes: int) -> keras.Model:
    """LeNet-5 with ReLU and maximum pooling, padding 2 (``same``)."""
    return keras.Sequential(
        [
            layers.Input((shape[1], shape[2], shape[0])),
            layers.Conv2D(6, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(classes),
        ]
    )


def _norm(x: tf.Tensor) -> tf.Tensor:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def _conv(x: tf.Tensor, filters: int, kernel: int, stride: int = 1) -> tf.Tensor:
    # Explicit padding: TensorFlow's "same" pads differently when the stride is 2.
    if kernel > 1:
        x = layers.ZeroPadding2D(kernel // 2)(x) if stride > 1 else x
    padding = "valid" if stride > 1 else "same"
    return layers.Conv2D(filters, kernel, strides=stride, padding=padding, use_bias=False)(x)


def _block(x: tf.Tensor, inputs: int, outputs: int, stride: int) -> tf.Tensor:
    y = layers.ReLU()(_norm(_conv(x, outputs, 3, stride)))
    y = _norm(_conv(y, outputs, 3))
    shortcut = _norm(_conv(x, outputs, 1, stride)) if stride != 1 or inputs != outputs else x
    return layers.ReLU()(layers.Add()([y, shortcut]))


def resnet8(shape: tuple[int, int, int], classes: int) -> keras.Model:
    """CIFAR-style residual network of depth 8."""
    x = entry = layers.Input((shape[1], shape[2], shape[0]))
    x = layers.ReLU()(_norm(_conv(x, 16, 3)))
    for inputs, outputs, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
        x = _block(x, inputs, outputs, stride)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(entry, layers.Dense(classes)(x))


MODELS = {"lenet": lenet, "resnet8": resnet8}


def training_step(model: str, shape: tuple[int, int, int], classes: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a function that trains on one batch (given as NCHW, the data set's layout) and returns the loss."""
    network = MODELS[model](shape, classes)
    optimizer = keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    optimizer.build(network.trainable_variables)

    @tf.function(
        input_signature=[tf.TensorSpec((None, *shape), tf.float32), tf.TensorSpec((None,), tf.int64)],
    )
    def compiled(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = network(tf.transpose(x, (0, 2, 3, 1)), training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    def step(x: np.ndarray, y: np.ndarray) -> float:
        return float(compiled(tf.constant(x), tf.constant(y)))

    return step
