"""Trees and tables of the domain ``ai.onnx.ml``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import onnx.numpy_helper
import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import InvalidNetworkError, UnsupportedOperatorError  # noqa: E402
from tests.unit.frameworks.pytorch.lowering.nodes import evaluate, run  # noqa: E402

ml = functools.partial(run, domain="ai.onnx.ml", version=5)


def _tensor(values: Any, dtype: Any = np.float32) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(values, dtype))


def _forest(seed: int, trees: int, depth: int, features: int, targets: int) -> dict[str, Any]:
    """Return the attributes of random full trees, whose nodes are numbered from the root on, left before right."""
    random = np.random.default_rng(seed)
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs", "missing_value_tracks_true")
    nodes: dict[str, list[int]] = {name: [] for name in names}
    splits: list[float] = []
    members: list[float] = []
    modes: list[int] = []
    roots: list[int] = []
    leaf_targets: list[int] = []

    def grow(levels: int) -> tuple[int, int]:
        if not levels:
            leaf_targets.append(int(random.integers(targets)))
            return len(leaf_targets) - 1, 1
        index = len(splits)
        splits.append(float(random.normal()))
        modes.append(int(random.integers(7)))
        if modes[-1] == 6:
            members.extend([*random.integers(1, 5, 3).astype(float), np.nan])
        nodes["featureids"].append(int(random.integers(features)))
        nodes["missing_value_tracks_true"].append(int(random.integers(2)))
        for name in names[1:5]:
            nodes[name].append(0)
        for side in ("true", "false"):
            nodes[f"{side}nodeids"][index], nodes[f"{side}leafs"][index] = grow(levels - 1)
        return index, 0

    for _ in range(trees):
        roots.append(grow(depth)[0])
    given: dict[str, Any] = {f"nodes_{name}": values for name, values in nodes.items()}
    given |= {"nodes_splits": _tensor(splits), "nodes_modes": _tensor(modes, np.uint8), "tree_roots": roots}
    weights = np.random.default_rng(seed + 1).normal(size=len(leaf_targets))
    given |= {"leaf_targetids": leaf_targets, "leaf_weights": _tensor(weights), "n_targets": targets}
    return given | ({"membership_values": _tensor(members)} if members else {})


@pytest.mark.parametrize("aggregate", range(4))
@pytest.mark.parametrize("depth", [1, 4])
def test_trees(aggregate: int, depth: int) -> None:
    x = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
    x[::3] = np.random.default_rng(4).integers(0, 5, x[::3].shape)
    x[::7, 1] = np.nan
    attributes = {**_forest(7, 5, depth, 4, 3), "aggregate_function": aggregate}

    (y,) = ml("TreeEnsemble", [x], **attributes)

    (expected,) = evaluate("TreeEnsemble", [x], domain="ai.onnx.ml", version=5, **attributes)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transform", range(5))
def test_what_follows_the_trees(transform: int) -> None:
    x = np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32)
    attributes = _forest(11, 1, 1, 4, 3)
    attributes["leaf_weights"] = _tensor([0.25, 0.75])
    (plain,) = ml("TreeEnsemble", [x], **attributes)

    (y,) = ml("TreeEnsemble", [x], post_transform=transform, **attributes)

    softmax = np.exp(plain) / np.exp(plain).sum(1, keepdims=True)
    where = {0: plain, 1: softmax, 2: 1 / (1 + np.exp(-plain)), 3: (plain != 0).astype(np.float32)}
    if transform == 4:
        assert (plain == 0.25).any()
        np.testing.assert_allclose(y[plain == 0.25], -0.6744898, rtol=1e-5)
    else:
        np.testing.assert_allclose(y, where[transform], rtol=1e-5)


def test_branches_that_lead_back_are_refused() -> None:
    attributes = _forest(1, 1, 2, 2, 1)
    attributes["nodes_truenodeids"][1], attributes["nodes_trueleafs"][1] = 0, 0

    with pytest.raises(InvalidNetworkError, match="leads back to where it came from; accepted are trees"):
        ml("TreeEnsemble", [np.zeros((1, 2), np.float32)], **attributes)


@pytest.mark.parametrize(
    ("x", "attributes", "expected"),
    [
        (np.array([1, 2, 5]), {"keys_int64s": [2, 1, 2], "values_floats": [0.5, 0.25, 0.75]}, [0.25, 0.75, -0.0]),
        (
            np.array([1, 2.5, np.nan], np.float32),
            {"keys_floats": [2.5, np.nan], "values_int64s": [7, 8]},
            [-1, 7, 8],
        ),
        (
            np.array([2.5, np.nan, 0], np.float32),
            {"keys_floats": [2.5, np.nan], "values_strings": ["a", "b"]},
            ["a", "b", "_Unused"],
        ),
        (np.array(["a", "q"], object), {"keys_strings": ["a", "b"], "values_int64s": [4, 5]}, [4, -1]),
        (
            np.array(["a", "q"], object),
            {
                "keys_tensor": _tensor(["q"], object),
                "values_tensor": _tensor([3], np.int16),
                "default_tensor": _tensor([9], np.int16),
            },
            [9, 3],
        ),
        (np.zeros((0,), np.int64), {"keys_int64s": [1], "values_int64s": [2]}, []),
    ],
)
def test_tables(x: Any, attributes: dict[str, Any], expected: list[Any]) -> None:
    texts = "values_strings" in attributes
    number = np.float32 if "values_floats" in attributes else np.int16 if "values_tensor" in attributes else np.int64
    wanted = np.array(expected, object if texts else number)

    (y,) = ml("LabelEncoder", [x], expected=wanted, **attributes)

    assert y.dtype == wanted.dtype
    np.testing.assert_array_equal(y, wanted)


def test_the_rest_of_the_domain_runs_on_the_host() -> None:
    x = np.array([[1.0, 2.0]], np.float32)
    (y,) = ml("Scaler", [x], offset=[1.0, 0.0], scale=[1.0, 3.0], expected=x)
    texts = np.array([["a", "b"]], object)
    (extracted,) = ml("ArrayFeatureExtractor", [texts, np.array([1])], expected=texts)

    np.testing.assert_array_equal(y, [[0.0, 6.0]])
    assert extracted.tolist() == [["b"]]
    with pytest.raises(UnsupportedOperatorError, match=r"ONNX' reference cannot run .*CategoryMapper"):
        ml("CategoryMapper", [np.array([1])], cats_int64s=[1], cats_strings=["a"], expected=np.array(["a"], object))
