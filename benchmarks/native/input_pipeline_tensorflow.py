"""JPEG files read by tf.data, as TensorFlow's guide "Better performance with the tf.data API" recommends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

__all__ = ["epochs"]


def epochs(
    paths: Sequence[str], labels: Sequence[int], settings: dict[str, Any], workers: int
) -> Iterator[Iterator[tuple[Any, Any]]]:
    """Yield one iterator over minibatches an epoch; ``workers`` is not used: AUTOTUNE decides.

    What differs from image to image is mapped before batching, in parallel and in any order; what does not, after.
    """
    size, padding = settings["size"], settings["padding"]
    mean = tf.constant(settings["mean"], tf.float32) * 255.0
    deviation = tf.constant(settings["standard_deviation"], tf.float32) * 255.0

    def read(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.pad(image, [[padding, padding], [padding, padding], [0, 0]])
        image = tf.image.random_crop(image, [size, size, 3])
        return tf.image.random_flip_left_right(image), label

    def normalise(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.transpose((tf.cast(images, tf.float32) - mean) / deviation, [0, 3, 1, 2]), labels

    dataset = tf.data.Dataset.from_tensor_slices((list(paths), list(labels)))
    dataset = dataset.shuffle(len(paths), reshuffle_each_iteration=True)
    dataset = dataset.map(read, tf.data.AUTOTUNE, deterministic=False)
    dataset = dataset.batch(settings["batch_size"], drop_remainder=True)
    dataset = dataset.map(normalise, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    while True:
        yield iter(dataset)
