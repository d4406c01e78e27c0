"""LeNet and ResNet-8 as a careful TensorFlow user writes them: NHWC, fused kernels, one ``tf.function`` a step."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

Shape = tuple[int, int, int]


class Network(tf.Module):
    """Variables and the layers that use them."""

    def __init__(self, shape: Shape, classes: int) -> None:
        """Declare the layers for samples of ``shape`` (C, H, W)."""
        super().__init__()
        self.stream = np.random.default_rng(0)
        self.declare(shape, classes)

    def declare(self, shape: Shape, classes: int) -> None:
        """Declare the layers."""
        raise NotImplementedError

    def weight(self, *shape: int) -> tf.Variable:
        """Return a variable with He's initial values."""
        deviation = (2.0 / np.prod(shape[:-1])) ** 0.5
        return tf.Variable(self.stream.normal(scale=deviation, size=shape).astype(np.float32))


class LeNet(Network):
    """LeNet-5 with ReLU and maximum pooling, padding 2."""

    def declare(self, shape: Shape, classes: int) -> None:
        """Declare the layers."""
        flat = 16 * (shape[1] // 4) * (shape[2] // 4)
        self.kernels = [self.weight(5, 5, shape[0], 6), self.weight(5, 5, 6, 16)]
        self.matrices = [self.weight(flat, 120), self.weight(120, 84), self.weight(84, classes)]
        sizes = (6, 16, 120, 84, classes)
        self.biases = [tf.Variable(tf.zeros(size)) for size in sizes]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return class scores of NHWC images."""
        for kernel, bias in zip(self.kernels, self.biases):
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias))
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, (-1, x.shape[1] * x.shape[2] * x.shape[3]))
        for matrix, bias in zip(self.matrices[:-1], self.biases[2:-1]):
            x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, matrix), bias))
        return tf.nn.bias_add(tf.matmul(x, self.matrices[-1]), self.biases[-1])


class ResNet8(Network):
    """CIFAR-style residual network of depth 8."""

    def declare(self, shape: Shape, classes: int) -> None:
        """Declare the layers."""
        self.entry = self.unit(3, shape[0], 16)
        self.blocks = []
        for inputs, outputs in ((16, 16), (16, 32), (32, 64)):
            shortcut = None if inputs == outputs else self.unit(1, inputs, outputs)
            self.blocks.append((self.unit(3, inputs, outputs), self.unit(3, outputs, outputs), shortcut))
        self.matrix, self.bias = self.weight(64, classes), tf.Variable(tf.zeros(classes))

    def unit(self, kernel: int, inputs: int, outputs: int) -> dict[str, tf.Variable]:
        """Return the variables of a convolution and its normalisation."""
        return {
            "kernel": self.weight(kernel, kernel, inputs, outputs),
            "scale": tf.Variable(tf.ones(outputs)),
            "bias": tf.Variable(tf.zeros(outputs)),
            "mean": tf.Variable(tf.zeros(outputs), trainable=False),
            "variance": tf.Variable(tf.ones(outputs), trainable=False),
        }

    def apply(self, unit: dict[str, tf.Variable], x: tf.Tensor, stride: int) -> tf.Tensor:
        """Convolve and normalise with the statistics of the batch."""
        size = unit["kernel"].shape[0]
        padding = "SAME" if stride == 1 else [[0, 0], [size // 2] * 2, [size // 2] * 2, [0, 0]]
        x = tf.nn.conv2d(x, unit["kernel"], stride, padding)
        x, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, unit["scale"], unit["bias"], epsilon=1e-5)
        unit["mean"].assign(0.9 * unit["mean"] + 0.1 * mean)
        unit["variance"].assign(0.9 * unit["variance"] + 0.1 * variance)
        return x

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return class scores of NHWC images."""
        x = tf.nn.relu(self.apply(self.entry, x, 1))
        for first, second, shortcut in self.blocks:
            stride = 1 if shortcut is None else 2
            y = self.apply(second, tf.nn.relu(self.apply(first, x, stride)), 1)
            x = tf.nn.relu(y + (x if shortcut is None else self.apply(shortcut, x, stride)))
        return tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, (1, 2)), self.matrix), self.bias)


MODELS = {"lenet": LeNet, "resnet8": ResNet8}


def training_step(model: str, shape: Shape, classes: int) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a function that trains on one batch (given as NCHW, the data set's layout) and returns the loss."""
    network = MODELS[model](shape, classes)
    optimizer = keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    optimizer.build(network.trainable_variables)

    @tf.function(
        input_signature=[tf.TensorSpec((None, *shape), tf.float32), tf.TensorSpec((None,), tf.int64)],
    )
    def compiled(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = network(tf.transpose(x, (0, 2, 3, 1)))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    def step(x: np.ndarray, y: np.ndarray) -> float:
        return float(compiled(tf.constant(x), tf.constant(y)))

    return step
