from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from tests.unit.frameworks.tensorflow.support import (
    check_executor_gradients,
    check_forward,
    model_of,
    random,
    weighted_sum,
)

SHAPES = [(4, 3), (3, 2, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)]


def statistics(channels: int, dtype: str = "float64") -> list[NDArray[Any]]:
    return [
        random(channels, seed=1, dtype=dtype),
        random(channels, seed=2, dtype=dtype),
        random(channels, seed=3, dtype=dtype),
        np.abs(random(channels, seed=4, dtype=dtype)) + np.asarray(0.5, dtype),
    ]


def trained(shape: tuple[int, ...], dtype: str = "float64", **attributes: Any) -> TensorFlowExecutor:
    """Return an executor of y = BatchNormalization(x) in training mode, whose x is a parameter."""
    names = ["x", "scale", "bias", "mean", "var"]
    arrays = dict(zip(names, [random(*shape, dtype=dtype), *statistics(shape[1], dtype)], strict=True))
    node = helper.make_node("BatchNormalization", names, ["y0"], name="norm", **attributes)
    model = model_of([node], {}, ["y0"], arrays)
    executor = from_model(weighted_sum(model) if dtype == "float64" else model)
    executor.network.train()
    return executor


#: What 0.7 and 1e-6 are as attributes of an ONNX node, which are float32.
MOMENTUM, EPSILON = float(np.float32(0.7)), float(np.float32(1e-6))


def expected_statistics(shape: tuple[int, ...], dtype: str, momentum: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what ONNX defines: the biased variance, the old values weighted by the momentum."""
    x = random(*shape, dtype=dtype).astype("float64")
    _, _, mean, var = (v.astype("float64") for v in statistics(shape[1], dtype))
    axes = (0, *range(2, x.ndim))
    return mean * momentum + x.mean(axes) * (1 - momentum), var * momentum + x.var(axes) * (1 - momentum)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-5)])
def test_evaluation(shape: tuple[int, ...], dtype: str, tolerance: float) -> None:
    arrays = [random(*shape, dtype=dtype), *statistics(shape[1], dtype)]
    check_forward("BatchNormalization", arrays, tolerance=tolerance, epsilon=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_training(shape: tuple[int, ...], dtype: str, tolerance: float) -> None:
    executor = trained(shape, dtype, momentum=MOMENTUM, epsilon=EPSILON)
    y = executor.inference({})["y0"].numpy()
    x = random(*shape, dtype=dtype).astype("float64")
    scale, bias = (v.astype("float64") for v in statistics(shape[1], dtype)[:2])
    axes = (0, *range(2, x.ndim))
    channel = (1, -1, *[1] * (x.ndim - 2))
    normalised = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)
    expected = normalised * scale.reshape(channel) + bias.reshape(channel)
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=10 * tolerance)
    for received, reference in zip(
        executor.network.fetch_tensors(["mean", "var"]), expected_statistics(shape, dtype, MOMENTUM), strict=True
    ):
        np.testing.assert_allclose(received, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
def test_training_gradients(shape: tuple[int, ...]) -> None:
    check_executor_gradients(trained(shape), {}, 1e-5, skip=("weights",))


def test_evaluation_gradients() -> None:
    executor = trained((2, 3, 4, 5))
    executor.network.eval()
    check_executor_gradients(executor, {}, skip=("weights",))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_value_a_channel(dtype: str) -> None:
    """The unbiased variance of one value is 0/0; ONNX' is 0."""
    executor = trained((1, 3, 1, 1), dtype, momentum=0.5)
    y = executor.inference({})["y0"].numpy()
    np.testing.assert_allclose(y.ravel(), statistics(3, dtype)[1], rtol=1e-6)
    mean, var = executor.network.fetch_tensors(["mean", "var"])
    expected_mean, expected_var = expected_statistics((1, 3, 1, 1), dtype, 0.5)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6)
    np.testing.assert_allclose(var, expected_var, rtol=1e-6)


def test_statistics_that_a_loss_reads() -> None:
    """The fused kernel would leave the gradient through the statistics out."""
    arrays = dict(
        zip(
            ["x", "scale", "bias", "mean", "var"],
            [random(4, 2, 3, 3, dtype="float32"), *statistics(2, "float32")],
            strict=True,
        )
    )
    nodes = [
        helper.make_node(
            "BatchNormalization", list(arrays), ["y", "m", "v"], name="norm", training_mode=1, momentum=0.0
        ),
        helper.make_node("Add", ["m", "v"], ["s"], name="add"),
        helper.make_node("ReduceSum", ["s"], ["loss"], name="sum", keepdims=0),
    ]
    executor = from_model(model_of(nodes, {}, ["loss"], arrays))
    executor.network.train()
    executor.inference_and_backprop({})
    (gradient,) = executor.network.fetch_tensors(["x.grad"])
    x = arrays["x"]
    expected = (1 + 2 * (x - x.mean((0, 2, 3), keepdims=True))) / 36
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
