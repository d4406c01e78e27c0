from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from deep500.frameworks.tensorflow import from_model


def run(op_type: str, x: np.ndarray, kind: str, **attributes: Any) -> np.ndarray:
    node = helper.make_node(op_type, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    types = {"text": 8, "int64": 7, "float32": 1, "float64": 11}
    given = 8 if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "ml",
        [helper.make_tensor_value_info("x", given, ["N", *x.shape[1:]])],
        [helper.make_tensor_value_info("y", types[kind], ["N", *("T" for _ in x.shape[1:])])],
    )
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("ai.onnx.ml", 5)]
    executor = from_model(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    return executor.to_numpy(executor.inference({"x": x})["y"])


@pytest.mark.parametrize("is_tensor", [True, False])
def test_labels(is_tensor: bool) -> None:
    keys, values = [5, 3, 5, 9], ["five", "three", "last five", "nine"]
    attributes: dict[str, Any] = {"keys_int64s": keys, "values_strings": values, "default_string": "none"}
    if is_tensor:
        attributes = {
            "keys_tensor": numpy_helper.from_array(np.array(keys)),
            "values_tensor": numpy_helper.from_array(np.array(values, object)),
            "default_tensor": numpy_helper.from_array(np.array(["none"], object)),
        }
    y = run("LabelEncoder", np.array([[3, 4], [5, 10]]), "text", **attributes)
    assert y.tolist() == [["three", "none"], ["last five", "none"]]


def test_labels_of_texts_and_of_nan() -> None:
    texts = np.array(["b", "c", "a"], object)
    assert run("LabelEncoder", texts, "int64", keys_strings=["a", "b"], values_int64s=[7, 8]).tolist() == [8, -1, 7]
    x = np.array([np.nan, 1, 2], np.float32)
    y = run("LabelEncoder", x, "float32", keys_floats=[2.0, np.nan], values_floats=[4.0, 5.0])
    assert y.tolist() == [5, -0.0, 4]


def tree(**attributes: Any) -> dict[str, Any]:
    """Two trees: x0 <= 1 and then, where not, x1 in {2, 3}; and one of a single leaf."""
    tensors = {
        "nodes_splits": np.array([1, 0, 0], np.float32),
        "nodes_modes": np.array([0, 6, 0], np.uint8),
        "leaf_weights": np.array([1, 2, 4, 8], np.float32),
        "membership_values": np.array([2, 3, np.nan], np.float32),
    }
    return {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 0],
        "nodes_truenodeids": [0, 1, 3],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 0],
        **{name: numpy_helper.from_array(value, name) for name, value in tensors.items()},
        **attributes,
    }


X = np.array([[0, 0], [2, 3], [2, 5], [np.nan, 2]], np.float32)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (1, [[9, 0], [8, 2], [12, 0], [8, 2]]),
        (0, [[4.5, 0], [4, 1], [6, 0], [4, 1]]),
    ],
)
def test_trees(function: int, expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(run("TreeEnsemble", X, "float32", **tree(aggregate_function=function)), expected)


def test_missing_values_track_true() -> None:
    y = run("TreeEnsemble", X, "float32", **tree(nodes_missing_value_tracks_true=[1, 0, 0]))
    np.testing.assert_array_equal(y[3], [9, 0])


def test_operator_on_the_host() -> None:
    y = run("Normalizer", np.array([[3, 4]], np.float32), "float32", norm="L2")
    np.testing.assert_allclose(y, [[0.6, 0.8]], rtol=1e-6)
