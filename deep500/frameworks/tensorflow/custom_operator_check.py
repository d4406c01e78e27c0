"""Checks of operators in TensorFlow beyond plain calls: graphs of any size, and models that are saved and loaded."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.device import Device, parse_device
from deep500.core.errors import OperatorError
from deep500.core.texts import one_line
from deep500.frameworks.tensorflow.custom_operator import custom_op
from deep500.frameworks.tensorflow.custom_operator_call import prepare_call
from deep500.frameworks.tensorflow.device import device_name
from deep500.operators.custom import Check, CustomOp, NativeOp, NotRunError
from deep500.operators.custom._checks import is_float_name
from deep500.operators.custom.findings import check_agreement, check_call, random_gradients
from deep500.operators.operator import OptionalArray

__all__ = ["custom_op_checks"]

Inputs = Sequence[OptionalArray]
Cases = Callable[[], Sequence[Inputs]]

#: What the process does that loads a model: it knows the operators from the model alone.
_LOADING = """
import json, sys
from deep500.frameworks.tensorflow import load_custom_operators
load_custom_operators()
import tensorflow as tf
folder, request = sys.argv[1], json.loads(sys.argv[2])
def read(name, dtypes):
    return [tf.io.parse_tensor(tf.io.read_file(f"{folder}/{name}{i}"), d) for i, d in enumerate(dtypes)]
model = tf.saved_model.load(f"{folder}/model")
inputs, gradients = read("input", request["inputs"]), read("gradient", request["gradients"])
sources = [x for x in inputs if x.dtype.is_floating or x.dtype.is_complex]
with tf.GradientTape() as tape:
    tape.watch(sources)
    outputs = model.call(*inputs)
found = {"output": outputs}
if request["differentiable"] and sources and gradients:
    wanted = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
    found["found"] = tape.gradient(wanted, sources, gradients, unconnected_gradients="zero")
for name, tensors in found.items():
    for i, tensor in enumerate(tensors):
        tf.io.write_file(f"{folder}/{name}{i}", tf.io.serialize_tensor(tensor))
"""

#: Seconds for a process to import TensorFlow and to load a model.
_TIMEOUT_S = 300.0

#: How much of what a process wrote before it failed is told, in characters.
_LAST_WORDS = 600


def custom_op_checks(op: CustomOp, cases: Cases, *, device: str | Device | None = None) -> list[Check]:
    """Return what is to be looked at beside plain calls and gradients.

    Args:
        op: The operator.
        cases: Makes inputs, and further ones of other sizes where there are some; called by each check.
        device: Where to run; by default on the processor.

    Raises:
        DeviceError: TensorFlow does not find the device.
    """
    found = parse_device(device)
    device_name(found)
    return [
        Check("tf.function", functools.partial(_check_graph, op, cases, found)),
        Check("SavedModel", functools.partial(_check_saved, op, cases)),
    ]


class _Model(tf.Module):  # type: ignore[misc]
    """An operator as a function of a graph, for tensors of any size."""

    def __init__(self, op: CustomOp, inputs: Inputs) -> None:
        super().__init__()
        function = custom_op(op)
        present = [x is not None for x in inputs]
        specifications = [
            tf.TensorSpec([None] * x.ndim, tf.as_dtype(x.dtype.name), f"x{index}")
            for index, x in enumerate(x for x in inputs if x is not None)
        ]

        def call(*given: Any) -> list[Any]:
            rest = iter(given)
            outputs = function(*[next(rest) if is_present else None for is_present in present])
            return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

        self.call = tf.function(call, input_signature=specifications, autograph=False)


def _check_graph(op: CustomOp, cases: Cases, device: Device) -> str:
    """Trace a graph once for all sizes, and run and differentiate it."""
    given = cases()
    with tf.device(device_name(device)):
        model = _Model(op, given[0])

    def call(*tensors: Any) -> Any:
        return model.call(*[x for x in tensors if x is not None])

    for inputs in given:
        check_call(op, inputs, functools.partial(prepare_call, call, device=device))
    sizes = "one size" if len(given) == 1 else f"{len(given)} sizes"
    return f"traced once, {sizes}" + (", with gradients" if op.differentiable else "")


def _check_saved(op: CustomOp, cases: Cases) -> str:
    """Save a model that holds the operator; load, run and differentiate it in a process that knows nothing of it."""
    if not isinstance(op, NativeOp):
        raise NotRunError("TensorFlow saves no operators that are written in Python")
    inputs = cases()[0]
    expected = op.run_forward(inputs)
    gradients = random_gradients(expected, np.random.default_rng(0)) if op.differentiable else []
    known = [g for g in gradients if g is not None]
    given = [x for x in inputs if x is not None]
    with tempfile.TemporaryDirectory(prefix="deep500-saved-model-") as folder:
        tf.saved_model.save(_Model(op, inputs), os.path.join(folder, "model"))
        _write(folder, "input", given)
        _write(folder, "gradient", known)
        request = {
            "inputs": [x.dtype.name for x in given],
            "gradients": [g.dtype.name for g in known],
            "differentiable": op.differentiable,
        }
        _load_elsewhere(folder, json.dumps(request))
        check_agreement("output", _read(folder, "output", [y.dtype.name for y in expected]), expected)
        if op.differentiable:
            wanted = _of_floats(inputs, op.run_backward(gradients, inputs, expected))
            dtypes = [x.dtype.name for x in given if is_float_name(x.dtype.name)]
            if known and dtypes:
                check_agreement("gradient", _read(folder, "found", dtypes), wanted)
    return "loaded by a fresh process" + (", with gradients" if op.differentiable else "")


def _load_elsewhere(folder: str, request: str) -> None:
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _LOADING, folder, request]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(f"The process that loads the model did not end within {_TIMEOUT_S:g} s.") from None
    if done.returncode != 0:
        words = one_line(done.stderr[-_LAST_WORDS:])
        raise OperatorError(f"The process that loads the model ended with {done.returncode}; it wrote: {words}")


def _write(folder: str, name: str, arrays: Sequence[Any]) -> None:
    for index, array in enumerate(arrays):
        tf.io.write_file(os.path.join(folder, f"{name}{index}"), tf.io.serialize_tensor(tf.constant(array)))


def _read(folder: str, name: str, dtypes: Sequence[str]) -> list[Any]:
    texts = [Path(folder, f"{name}{index}").read_bytes() for index in range(len(dtypes))]
    return [tf.io.parse_tensor(text, tf.as_dtype(dtype)).numpy() for text, dtype in zip(texts, dtypes)]


def _of_floats(inputs: Inputs, gradients: Sequence[Any]) -> list[Any]:
    """Return the gradients by those inputs that TensorFlow differentiates by."""
    return [g for x, g in zip(inputs, gradients) if x is not None and is_float_name(x.dtype.name)]
