from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from deep500.frameworks.tensorflow.lowering._traced_entries import remaining_size, traced_entries


def traced(function: Callable[[tf.Tensor], Any], *shape: int | None) -> Any:
    """Return what a function gives while it is traced on a tensor of a shape."""
    found: list[Any] = []

    def run(x: tf.Tensor) -> None:
        found.append(function(x))

    tf.function(run, input_signature=[tf.TensorSpec(shape)], autograph=False).get_concrete_function()
    return found[0]


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        (lambda s: s, [None, 3, 4]),
        (lambda s: tf.gather(s, [2, 0, -1]), [4, None, 4]),
        (lambda s: tf.concat([tf.gather(s, [1]), [7], s[2:]], 0), [3, 7, 4]),
        (lambda s: s[::-1], [4, 3, None]),
        (lambda s: tf.reduce_prod(s[1:], keepdims=True), [12]),
        (lambda s: tf.reduce_prod(s, keepdims=True), [None]),
        (lambda s: tf.stack([s[1], s[0], tf.constant(2)]), [3, None, 2]),
        (lambda s: tf.maximum(s[1:], [5, 1]), [5, 4]),
        (lambda s: 2 * tf.cast(s[1:], tf.int64) + tf.constant([1, 0], tf.int64), [7, 8]),
        (lambda s: s - 1, [None, 2, 3]),
        (lambda s: tf.expand_dims(tf.squeeze(tf.gather(s, [1])), 0), [3]),
        (lambda s: tf.math.floordiv(s, 2), [None, None, None]),
    ],
)
def test_entries(vector: Callable[[tf.Tensor], tf.Tensor], expected: list[int | None]) -> None:
    assert traced(lambda x: traced_entries(vector(tf.shape(x))), None, 3, 4) == expected


def test_what_remains() -> None:
    def rows(x: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(x)
        return tf.concat([tf.reduce_prod(shape[:2], keepdims=True), [-1], shape[3:]], 0)

    assert traced(lambda x: remaining_size(x, rows(x), True), None, 8, 64, 32) == 64
    # Two sizes that are not known may be any two numbers.
    assert traced(lambda x: remaining_size(x, rows(x), True), None, 8, None, 32) is None
    assert traced(lambda x: remaining_size(x, tf.constant([0, -1]), True), None, 8, 4) == 32
    assert traced(lambda x: remaining_size(x, tf.constant([5, -1]), True), None, 8, 4) is None
    assert traced(lambda x: remaining_size(x, tf.constant([5, -1]), True), 2, 3, 4) is None
