from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode
from deep500.networks.window import Window, read_window
from tests.unit.networks.support import make_model, value


def node(shape: tuple[Any, ...] | None = (1, 1, 7, 8), op_type: str = "Conv", **attributes: Any) -> OperatorNode:
    types = (None,) if shape is None else (TensorDescriptor("float32", shape),)
    return OperatorNode("window", "", op_type, 22, attributes, ("x",), ("y",), types)


def run(op_type: str, x: np.ndarray, inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    model = make_model(
        [helper.make_node(op_type, ["x", *inputs], ["y"], **attributes)],
        [value("x", *x.shape)],
        [value("y", *(f"d{i}" for i in range(x.ndim)))],
        inputs,
    )
    result: np.ndarray = ReferenceEvaluator(model).run(None, {"x": x})[0]
    return result


def test_defaults() -> None:
    window = read_window(node(kernel_shape=[3, 2]))

    assert (window.kernel, window.strides, window.dilations) == ((3, 2), (1, 1), (1, 1))
    assert window.pads_begin == window.pads_end == (0, 0)
    assert window.rank == 2
    assert window.is_symmetric
    assert not window.ceil_mode


def test_attributes() -> None:
    window = read_window(node(strides=[2, 3], dilations=[1, 2], pads=[1, 2, 3, 4]), kernel=(3, 3))

    assert (window.kernel, window.strides, window.dilations) == ((3, 3), (2, 3), (1, 2))
    assert (window.pads_begin, window.pads_end) == ((1, 2), (3, 4))
    assert not window.is_symmetric


def test_valid_means_no_padding() -> None:
    window = read_window(node(kernel_shape=[3, 3], auto_pad="VALID", pads=[0, 0, 0, 0]))

    assert window.pads_begin == window.pads_end == (0, 0)


@pytest.mark.parametrize("shape", [("N", "C", 7, 8), (None, None, 7, 8)])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_needs_the_spatial_sizes_only(shape: tuple[Any, ...], auto_pad: str) -> None:
    window = read_window(node(shape, kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto_pad))

    assert window == read_window(node((1, 1, 7, 8), kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto_pad))


@pytest.mark.parametrize("shape", [None, (1, 1, "H", 8), (1, 1, None, 8)])
def test_same_padding_of_symbolic_sizes_is_refused(shape: Any) -> None:
    with pytest.raises(InvalidNetworkError, match="auto_pad=SAME_UPPER, which needs the spatial sizes"):
        read_window(node(shape, kernel_shape=[3, 3], auto_pad="SAME_UPPER"))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "The kernel size of node 'window'"),
        ({"kernel_shape": []}, "The kernel size of node 'window'"),
        ({"kernel_shape": [3, 3], "auto_pad": "SAME"}, "auto_pad='SAME'; accepted are NOTSET, VALID"),
        ({"kernel_shape": [3, 3], "pads": [1, 1]}, r"pads=\[1, 1\]; accepted are 4 numbers"),
        ({"kernel_shape": [3, 3], "strides": [1]}, r"strides=\[1\]; accepted are 2 numbers"),
        ({"kernel_shape": [3, 3], "dilations": [1, 1, 1]}, r"dilations=\[1, 1, 1\]; accepted are 2 numbers"),
    ],
)
def test_wrong_attributes(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidNetworkError, match=message):
        read_window(node(**attributes))


@given(
    size=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    kernel=st.lists(st.integers(1, 4), min_size=2, max_size=2),
    stride=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    dilation=st.lists(st.integers(1, 2), min_size=2, max_size=2),
    auto_pad=st.sampled_from(["SAME_UPPER", "SAME_LOWER"]),
)
def test_same_padding_is_that_of_onnx(
    size: list[int], kernel: list[int], stride: list[int], dilation: list[int], auto_pad: str
) -> None:
    rank = len(size)
    attributes = {"kernel_shape": kernel[:rank], "strides": stride[:rank], "dilations": dilation[:rank]}
    x = np.random.default_rng(0).standard_normal((1, 1, *size)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((1, 1, *kernel[:rank])).astype(np.float32)
    window = read_window(node(x.shape, auto_pad=auto_pad, **attributes))

    assert all(high - low in (0, 1) for low, high in padding_by_side(window, auto_pad))
    explicit = run("Conv", x, {"w": w}, **attributes, pads=[*window.pads_begin, *window.pads_end])
    assert explicit.shape[2:] == tuple(-(-n // s) for n, s in zip(size, stride))
    assume(max(dilation[:rank]) == 1)  # ONNX' evaluator forgets dilations when it resolves auto_pad
    np.testing.assert_allclose(run("Conv", x, {"w": w}, **attributes, auto_pad=auto_pad), explicit, rtol=1e-5)


def padding_by_side(window: Window, auto_pad: str) -> list[tuple[int, int]]:
    """Return the smaller and the larger padding of every axis, where ``auto_pad`` says that they are."""
    sides = list(zip(window.pads_begin, window.pads_end, strict=True))
    return sides if auto_pad == "SAME_UPPER" else [(end, begin) for begin, end in sides]


@given(
    size=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    pads=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_overhang_says_what_ceil_mode_adds(size: int, kernel: int, stride: int, pads: tuple[int, int]) -> None:
    assume(max(pads) < kernel <= size + sum(pads))
    attributes: dict[str, Any] = {"kernel_shape": [kernel], "strides": [stride], "pads": list(pads)}
    window = read_window(node((1, 1, size), "MaxPool", ceil_mode=1, **attributes))

    covered = size + sum(pads) + window.overhang[0]
    model = make_model(
        [helper.make_node("MaxPool", ["x"], ["y"], ceil_mode=1, **attributes)],
        [value("x", 1, 1, size)],
        [value("y", 1, 1, "n")],
    )
    # ONNX' evaluator errs in small cases; its shape inference is the oracle.
    (output,) = Network.load(model).outputs.values()
    assert (window.pads_begin[0], window.pads_end[0]) == pads
    assert (covered - kernel) % stride == 0
    assert output.shape == (1, 1, (covered - kernel) // stride + 1)
