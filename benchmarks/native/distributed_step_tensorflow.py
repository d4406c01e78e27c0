"""Data parallel training as a TensorFlow user writes it: ``MultiWorkerMirroredStrategy``, a worker a rank.

TensorFlow takes its place among the workers before it computes anything, or not at all. So the workers are connected
when this module is imported, on all ranks together.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping

import keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI

from benchmarks.native.tensorflow import LeNet, Network, ResNet8

__all__ = ["step_native"]

RATE, MOMENTUM = 0.01, 0.9

Step = Callable[[], float]


class ResNet18(ResNet8):
    """The residual network of 18 layers for ImageNet."""

    def declare(self, shape: tuple[int, int, int], classes: int) -> None:
        """Declare the layers."""
        self.entry = self.unit(7, shape[0], 64)
        self.blocks = []
        for inputs, outputs in ((64, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512)):
            shortcut = None if inputs == outputs else self.unit(1, inputs, outputs)
            self.blocks.append((self.unit(3, inputs, outputs), self.unit(3, outputs, outputs), shortcut))
        self.blocks.append((self.unit(3, 512, 512), self.unit(3, 512, 512), None))
        self.matrix, self.bias = self.weight(512, classes), tf.Variable(tf.zeros(classes))

    def unit(self, kernel: int, inputs: int, outputs: int) -> dict[str, tf.Variable]:
        """Return the variables of a convolution and its normalisation, whose statistics each worker has for itself."""
        made = super().unit(kernel, inputs, outputs)
        for name in ("mean", "variance"):
            made[name] = tf.Variable(
                tf.zeros(outputs) if name == "mean" else tf.ones(outputs),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.MEAN,
            )
        return made

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return class scores of NHWC images."""
        x = tf.nn.relu(self.apply(self.entry, x, 2))
        x = tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")  # nothing is below 0
        for first, second, shortcut in self.blocks:
            stride = 1 if shortcut is None else 2
            y = self.apply(second, tf.nn.relu(self.apply(first, x, stride)), 1)
            x = tf.nn.relu(y + (x if shortcut is None else self.apply(shortcut, x, stride)))
        return tf.nn.bias_add(tf.matmul(tf.reduce_mean(x, (1, 2)), self.matrix), self.bias)


MODELS: dict[str, tuple[type[Network], int]] = {"lenet": (LeNet, 10), "resnet18": (ResNet18, 1000)}


def connect() -> tf.distribute.Strategy:
    """Return the strategy of a cluster whose workers are the ranks, on free ports of this machine."""
    comm = MPI.COMM_WORLD
    with _bound_socket() as free:
        ports = comm.allgather(free.getsockname()[1])
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": comm.rank}})
    return tf.distribute.MultiWorkerMirroredStrategy()


def _bound_socket() -> socket.socket:
    """Return a socket on a free port, below those of which the system may give one to a connection meanwhile."""
    for port in np.random.default_rng(os.getpid()).permutation(np.arange(20000, 32000)):
        free = socket.socket()
        try:
            free.bind(("localhost", int(port)))
        except OSError:
            free.close()
        else:
            return free
    raise OSError("no port from 20000 to 32000 is free")


STRATEGY = connect()


def step_native(model: str, batch: Mapping[str, np.ndarray]) -> Step:
    """Return a function that trains on a minibatch under the strategy and returns the loss of this worker's part."""
    kind, classes = MODELS[model]
    shape = batch["input"].shape[1:]
    with STRATEGY.scope():
        network = kind(shape, classes)
        variables = network.trainable_variables
        optimizer = keras.optimizers.SGD(learning_rate=RATE, momentum=MOMENTUM)
        optimizer.build(variables)

    def replica(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = network(tf.transpose(x, (0, 2, 3, 1)))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores))
            scaled = loss / STRATEGY.num_replicas_in_sync  # the optimizer adds up the workers' gradients
        optimizer.apply(tape.gradient(scaled, variables), variables)
        return loss

    @tf.function(input_signature=[tf.TensorSpec((None, *shape), tf.float32), tf.TensorSpec((None,), tf.int64)])
    def compiled(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return STRATEGY.run(replica, (x, y))

    return lambda: float(compiled(tf.constant(batch["input"]), tf.constant(batch["label"])))
