from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from onnx import helper

from deep500.core.errors import OperatorError, UnsupportedOperatorError
from deep500.frameworks.tensorflow import from_model
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.frameworks.tensorflow.translation import permute
from tests.unit.frameworks.tensorflow.support import model_of, random


@pytest.mark.parametrize(
    ("shape", "reshaped"),
    [((2, 1, 4, 5), True), ((2, 3, 1, 1), True), ((1, 3, 1, 5), False), ((2, 3, 4, 5), False), ((0, 1, 4, 5), True)],
)
@pytest.mark.parametrize("unknown", [(), (0,), (0, 3)])
def test_permute(shape: tuple[int, ...], reshaped: bool, unknown: tuple[int, ...]) -> None:
    declared = [None if axis in unknown else size for axis, size in enumerate(shape)]

    @tf.function(input_signature=[tf.TensorSpec(declared, tf.float32)], autograph=False)
    def run(x: tf.Tensor) -> tf.Tensor:
        return permute(x, (0, 2, 3, 1))

    x = random(*shape, dtype="float32")
    np.testing.assert_array_equal(run(x).numpy(), x.transpose(0, 2, 3, 1))
    kinds = {operation.type for operation in run.get_concrete_function().graph.get_operations()}
    if reshaped and not (unknown == (0, 3) and shape[3] == 1):
        assert "Transpose" not in kinds


def test_operator_without_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    lowerings.operators()  # imports all of them
    monkeypatch.delitem(lowerings._table, ("", "Gather"))
    model = model_of(
        [helper.make_node("Gather", ["x", "i"], ["y0"], name="rows")],
        {"x": ("float32", [3, 2])},
        ["y0"],
        {"i": np.array([0, 2])},
    )
    executor = from_model(model)
    with pytest.raises(UnsupportedOperatorError, match=r"tensorflow.*'rows' \(ai.onnx::Gather, version 23\)"):
        executor.inference({"x": random(3, 2, dtype="float32")})


def test_what_tensorflow_refuses_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Add", ["x", "z"], ["y0"], name="sum of two")
    executor = from_model(model_of([node], {"x": ("float32", [3, "A"]), "z": ("float32", [3, "B"])}, ["y0"], {}))
    inputs = {"x": random(3, 2, dtype="float32"), "z": random(3, 3, dtype="float32")}
    with pytest.raises(ValueError, match="sum_of_two"):
        executor.inference(inputs)
    node = helper.make_node("Abs", ["x"], ["y0"], name="absolute")
    executor = from_model(model_of([node], {"x": ("uint32", [3])}, ["y0"], {}))
    monkeypatch.setitem(lowerings._table["", "Abs"], 6, lambda node, x: tf.math.abs(x))
    with pytest.raises(OperatorError, match=r"'absolute' \(ai.onnx::Abs"):
        executor.inference({"x": np.zeros(3, np.uint32)})


def test_absent_optional_inputs() -> None:
    node = helper.make_node("Clip", ["x", "", "high"], ["y0"], name="clip")
    executor = from_model(model_of([node], {"x": ("float32", [3])}, ["y0"], {"high": np.float32(0.5)}))
    y = executor.inference({"x": np.array([-1, 0, 1], np.float32)})["y0"]
    np.testing.assert_array_equal(y.numpy(), np.array([-1, 0, 0.5], np.float32))
