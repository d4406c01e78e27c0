"""Saved models: what one process has saved, another one loads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.frameworks.tensorflow import custom_op
from deep500.operators.custom import NativeOp
from deep500.operators.native import NativeLibrary
from tests.unit.frameworks.tensorflow.operators import blend, blend_inputs, exponential

#: Runs in a process that knows nothing of the operators but what the models hold.
LOADING = """
import json, sys
import numpy as np
import pytest
from deep500.frameworks.tensorflow._start import start_quietly

start_quietly()
import tensorflow as tf

def failure(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

folder = sys.argv[1]
found = {"before": failure(tf.saved_model.load, folder)}

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow import load_custom_operators
from deep500.operators.custom import NativeOp
from deep500.operators.native import NativeLibrary

load_custom_operators()
model = tf.saved_model.load(folder)
x, y = (tf.constant(value, tf.float64) for value in json.loads(sys.argv[2]))
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        outputs = model.blended(x, y)
        loss = tf.add_n([tf.reduce_sum(output**2) for output in outputs])
    gradients = tape.gradient(loss, [x, y])
found["outputs"] = [output.numpy().tolist() for output in outputs]
found["gradients"] = [gradient.numpy().tolist() for gradient in gradients]
found["second of blend"] = failure(outer.gradient, gradients[0], x)
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = model.exponential(x)
    gradient = tape.gradient(z, x)
found["exponential"] = [value.numpy().tolist() for value in (z, gradient, outer.gradient(gradient, x))]
found["throws"] = failure(model.blended, x, tf.constant([77.0], tf.float64))
found["refused"] = failure(model.blended, x[:1], y)


# A second model, whose library has moved.
found["missing"] = []
for kind in (tf.errors.NotFoundError, OperatorError, ()):
    try:
        model = tf.saved_model.load(sys.argv[3])
        if kind is tf.errors.NotFoundError:
            model.exponential(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model.exponential(x)
        found["moved"] = [y.numpy().tolist(), tape.gradient(y, x).numpy().tolist()]
    except kind as error:
        found["missing"].append(str(error))
    if kind is OperatorError:
        load_custom_operators(NativeOp(NativeLibrary(sys.argv[4], "exponential")))
found["modules"] = [name for name in ("tests.unit", "torch") if name in sys.modules]
print(json.dumps(found))
"""


class Model(tf.Module):
    """Two operators, for any batch size."""

    def __init__(self, exponential_op: NativeOp | None = None) -> None:
        super().__init__()
        self.blend = custom_op(blend())
        self.exp = custom_op(exponential_op or exponential())

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64), tf.TensorSpec([None], tf.float64)])
    def blended(self, x: Any, y: Any) -> Any:
        return self.blend(x, y, tf.range(5, dtype=tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def exponential(self, x: Any) -> Any:
        return self.exp(x)


@pytest.fixture(scope="module")
def given() -> list[tf.Tensor]:
    return [tf.constant(x) for x in blend_inputs()[:2]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, given: list[tf.Tensor]) -> Any:
    """What another process finds in two models that this one has saved; the library of the second has moved."""
    folder = tmp_path_factory.mktemp("models")
    tf.saved_model.save(Model(), str(folder / "model"))
    shutil.copy(exponential().library.path, folder / "here.so")
    moving = NativeOp(NativeLibrary(folder / "here.so", "exponential"))
    tf.saved_model.save(Model(moving), str(folder / "moved"))
    os.replace(folder / "here.so", folder / "there.so")
    arguments = [str(folder / "model"), json.dumps([x.numpy().tolist() for x in given]), str(folder / "moved")]
    command = [sys.executable, "-c", LOADING, *arguments, str(folder / "there.so")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


def test_a_saved_model_needs_nothing_of_the_process_that_saved_it(found: Any) -> None:
    assert found["modules"] == []
    assert "Deep500Call" in found["before"]


def test_outputs_and_gradients(found: Any, given: list[tf.Tensor]) -> None:
    model = Model()
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = model.blended(*given)
        loss = tf.add_n([tf.reduce_sum(output**2) for output in outputs])
    for key, expected in (("outputs", outputs), ("gradients", tape.gradient(loss, given))):
        for value, reference in zip(found[key], expected, strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-12)
    np.testing.assert_allclose(found["exponential"], [np.exp(given[0])] * 3, rtol=1e-12)


def test_errors_keep_their_reason(found: Any) -> None:
    assert "'blend' cannot be differentiated twice" in found["second of blend"]
    assert "y must not be 77" in found["throws"]
    assert "x has fewer rows than y has elements" in found["refused"]


def test_a_library_that_has_moved_is_provided(found: Any, given: list[tf.Tensor]) -> None:
    assert len(found["missing"]) == 2  # without and with a tape
    for message in found["missing"]:
        assert "'exponential' has no library here" in message
        assert "load_custom_operators(operator)" in message
    np.testing.assert_allclose(found["moved"], [np.exp(given[0])] * 2, rtol=1e-12)


def test_the_source_is_not_what_is_saved(tmp_path: Path) -> None:
    tf.saved_model.save(Model(), str(tmp_path))
    saved = (tmp_path / "saved_model.pb").read_bytes()
    assert os.fsencode(exponential().library.path) in saved
    assert b"D500_OPERATOR" not in saved
