"""Calls of graphs without a second check: the same results, variables included, and a way without the entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.frameworks.tensorflow._flat_call import flat_call


def counting() -> tuple[Any, tf.Variable]:
    """Return a concrete function with a captured variable, and the variable."""
    total = tf.Variable([1.0, 2.0])

    def run(x: tf.Tensor, factor: tf.Tensor) -> tuple[list[tf.Tensor | None], tf.Tensor]:
        total.assign_add(factor * x)
        return [tf.identity(total), None], x - factor

    signature = [tf.TensorSpec((None,), tf.float32), tf.TensorSpec((), tf.float32)]
    return tf.function(run, input_signature=signature, autograph=False).get_concrete_function(), total


class WithoutEntry:
    """A function of a version of TensorFlow that can be called by its arguments alone."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *tensors: tf.Tensor) -> Any:
        return self._function(*tensors)


@pytest.mark.parametrize("wrap", [lambda function: function, WithoutEntry])
def test_results_and_variables_are_those_of_the_function_itself(wrap: Any) -> None:
    function, total = counting()
    call = flat_call(wrap(function))
    for step in range(1, 3):
        (first, nothing), second = call(tf.constant([1.0, 10.0]), tf.constant(2.0))
        assert nothing is None
        np.testing.assert_array_equal(first, [1 + 2 * step, 2 + 20 * step])
        np.testing.assert_array_equal(second, [-1.0, 8.0])
        np.testing.assert_array_equal(total, first)


def test_this_version_has_the_entry() -> None:
    function, _ = counting()
    assert flat_call(function) is not function


def test_another_dtype_is_an_error_and_changes_nothing() -> None:
    function, total = counting()
    with pytest.raises(tf.errors.InvalidArgumentError):
        flat_call(function)(tf.constant([1.0, 10.0], tf.float64), tf.constant(2.0))
    np.testing.assert_array_equal(total, [1.0, 2.0])
