"""The laws of operators that draw at random: what the ONNX project's cases cannot compare value by value."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.helper as helper
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

FRAMEWORKS = ("reference", "pytorch", "tensorflow")

#: Elements of a large sample: means are known to a few thousandths.
SIZE = 40_000

#: A true law is taken for a wrong one once in about 2 million comparisons.
SIGMAS = 5.0

FLOATS = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
}

pytestmark = pytest.mark.parametrize("framework", FRAMEWORKS)


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def _prepared(
    framework: str, op_type: str, inputs: Sequence[Any] = (), outputs: int = 1, **attributes: Any
) -> functools.partial[tuple[Any, ...]]:
    """Return one node of an operator, ready to be run on its inputs again and again."""
    if framework != "reference":
        pytest.importorskip({"pytorch": "torch"}.get(framework, framework))
    backend = importlib.import_module(f"deep500.frameworks.{framework}.backend")
    given = {f"input_{index}": np.asarray(value) for index, value in enumerate(inputs)}
    names = [f"output_{index}" for index in range(outputs)]
    node = helper.make_node(op_type, list(given), names, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    graph = helper.make_graph([node], op_type, infos, [helper.make_empty_tensor_value_info(name) for name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    prepared = backend.prepare(onnx.shape_inference.infer_shapes(model), "CPU")
    return functools.partial(prepared.run, list(given.values()))


def _wide(sample: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(sample).astype(np.float64)


def _assert_moments(sample: NDArray[Any], mean: float, variance: float, fourth: float) -> None:
    """Compare mean and variance of a sample with those of a law.

    Args:
        sample: What was drawn, each element by itself.
        mean: Mean of the law.
        variance: Its variance.
        fourth: Its fourth central moment, by the square of the variance: how uncertain a sample's variance is.
    """
    values = _wide(sample).reshape(-1)
    count = values.size
    assert abs(values.mean() - mean) < SIGMAS * math.sqrt(variance / count)
    assert abs(values.var() - variance) < SIGMAS * variance * math.sqrt(max(fourth - 1.0, 0.0) / count) + 1e-12


def _assert_no_order(sample: NDArray[Any]) -> None:
    """Neighbours must not resemble each other: their correlation is that of independent numbers."""
    values = _wide(sample).reshape(-1)
    correlation = np.corrcoef(values[:-1], values[1:])[0, 1]
    assert abs(correlation) < SIGMAS / math.sqrt(values.size - 1)


def _assert_repeats_with_its_seed(framework: str, op_type: str, inputs: Sequence[Any], **attributes: Any) -> None:
    """Runs of one seed agree, within a prepared network and between two; those of others, and without, differ."""
    run = _prepared(framework, op_type, inputs, seed=3.0, **attributes)
    first = _wide(run()[0])
    np.testing.assert_array_equal(first, _wide(run()[0]))
    np.testing.assert_array_equal(first, _wide(_prepared(framework, op_type, inputs, seed=3.0, **attributes)()[0]))
    assert (first != _wide(_prepared(framework, op_type, inputs, seed=8.0, **attributes)()[0])).any()
    free = _prepared(framework, op_type, inputs, **attributes)
    assert (_wide(free()[0]) != _wide(free()[0])).any()


SHAPE_OPERATORS: Mapping[str, Mapping[str, float]] = {
    "RandomNormal": {"mean": -2.0, "scale": 3.0},
    "RandomUniform": {"low": -1.0, "high": 4.0},
}


def _assert_law(op_type: str, sample: NDArray[Any]) -> None:
    """The law of an operator of :data:`SHAPE_OPERATORS` or its ``Like``, with the attributes given there."""
    if op_type.startswith("RandomNormal"):
        _assert_moments(sample, -2.0, 9.0, 3.0)
        # The share within one standard deviation tells a normal law from others of its moments.
        inside = np.mean(np.abs(_wide(sample) + 2.0) < 3.0)
        assert abs(inside - 0.6827) < SIGMAS * math.sqrt(0.6827 * 0.3173 / sample.size) + 0.003
    else:
        _assert_moments(sample, 1.5, 25.0 / 12.0, 1.8)
        assert _wide(sample).min() >= -1.0
        assert _wide(sample).max() <= 4.0
        quarters = np.histogram(_wide(sample), 4, (-1.0, 4.0))[0]
        assert np.abs(quarters / sample.size - 0.25).max() < SIGMAS * math.sqrt(0.25 * 0.75 / sample.size) + 0.003


@pytest.mark.parametrize("op_type", SHAPE_OPERATORS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_of_a_shape(framework: str, op_type: str, dtype: str) -> None:
    attributes = {**SHAPE_OPERATORS[op_type], "dtype": FLOATS[dtype], "shape": [200, SIZE // 200]}
    (sample,) = _prepared(framework, op_type, **attributes)()

    assert sample.shape == (200, SIZE // 200)
    assert sample.dtype == _dtype(dtype)
    _assert_law(op_type, sample)
    _assert_no_order(sample)


@pytest.mark.parametrize("op_type", SHAPE_OPERATORS)
def test_numbers_of_a_shape_by_default(framework: str, op_type: str) -> None:
    (sample,) = _prepared(framework, op_type, shape=[SIZE])()

    assert sample.dtype == np.float32
    normal = op_type == "RandomNormal"
    _assert_moments(sample, 0.0 if normal else 0.5, 1.0 if normal else 1 / 12, 3.0 if normal else 1.8)


@pytest.mark.parametrize("op_type", SHAPE_OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_numbers_like_a_tensor(framework: str, op_type: str, dtype: str) -> None:
    like, attributes = np.zeros((4, SIZE // 4), dtype), dict(SHAPE_OPERATORS[op_type])
    if dtype == "int64":  # only floats are drawn
        attributes["dtype"] = TensorProto.DOUBLE
    (sample,) = _prepared(framework, f"{op_type}Like", [like], **attributes)()

    assert sample.shape == like.shape
    assert sample.dtype == (np.float64 if dtype == "int64" else np.dtype(dtype))
    _assert_law(op_type, sample)


@pytest.mark.parametrize("op_type", SHAPE_OPERATORS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_numbers_of_small_shapes(framework: str, op_type: str, shape: tuple[int, ...]) -> None:
    (sample,) = _prepared(framework, f"{op_type}Like", [np.zeros(shape, np.float32)])()

    assert sample.shape == shape


@pytest.mark.parametrize("op_type", SHAPE_OPERATORS)
def test_numbers_repeat_with_their_seed(framework: str, op_type: str) -> None:
    _assert_repeats_with_its_seed(framework, op_type, [], shape=[100])
    _assert_repeats_with_its_seed(framework, f"{op_type}Like", [np.zeros(100, np.float32)])


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.3, 0.75, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_bernoulli(framework: str, probability: float, dtype: str) -> None:
    given = np.full((4, SIZE // 4), probability, dtype)
    (sample,) = _prepared(framework, "Bernoulli", [given])()

    assert sample.shape == given.shape
    assert sample.dtype == given.dtype
    assert set(np.unique(_wide(sample))) <= {0.0, 1.0}
    share = float(given.reshape(-1)[0])
    deviation = math.sqrt(share * (1.0 - share) / sample.size)
    assert abs(_wide(sample).mean() - share) <= SIGMAS * deviation
    if deviation:
        _assert_no_order(sample)


def test_bernoulli_takes_every_probability_for_itself(framework: str) -> None:
    given = np.repeat(np.linspace(0.0, 1.0, 11, dtype=np.float32), SIZE // 11)
    (sample,) = _prepared(framework, "Bernoulli", [given])()

    shares = _wide(sample).reshape(11, -1).mean(1)
    np.testing.assert_allclose(shares, np.linspace(0.0, 1.0, 11), atol=SIGMAS * 0.5 / math.sqrt(SIZE // 11))


@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8", "float64", "uint64"])
def test_bernoulli_in_other_dtypes(framework: str, dtype: str) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (sample,) = _prepared(framework, "Bernoulli", [np.full(1000, 0.5, np.float32)], dtype=code)()

    assert sample.dtype == np.dtype(dtype)
    assert 300 < _wide(sample).sum() < 700


def test_bernoulli_repeats_with_its_seed(framework: str) -> None:
    _assert_repeats_with_its_seed(framework, "Bernoulli", [np.full(200, 0.5, np.float32)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_multinomial(framework: str, dtype: str) -> None:
    shares = np.array([[0.1, 0.6, 0.3], [0.0, 0.5, 0.5]])
    logarithms = np.add(np.log(np.maximum(shares, 1e-30)), [[2.0], [-1.0]]).astype(dtype)  # not normalised
    (sample,) = _prepared(framework, "Multinomial", [logarithms], sample_size=SIZE)()

    assert sample.shape == (2, SIZE)
    assert sample.dtype == np.int32
    for row, expected in zip(sample, shares):
        counts = np.bincount(row, minlength=3) / SIZE
        atol = SIGMAS * 0.5 / math.sqrt(SIZE) + (2e-3 if dtype == "float16" else 0.0)
        np.testing.assert_allclose(counts, expected, atol=atol)
        _assert_no_order(row)


def test_multinomial_in_int64_repeats_with_its_seed(framework: str) -> None:
    logarithms = np.zeros((2, 5), np.float32)
    attributes = {"sample_size": 100, "dtype": TensorProto.INT64}
    (sample,) = _prepared(framework, "Multinomial", [logarithms], **attributes)()

    assert sample.dtype == np.int64
    assert set(np.unique(sample)) == set(range(5))
    _assert_repeats_with_its_seed(framework, "Multinomial", [logarithms], **attributes)


def _dropout(framework: str, x: NDArray[Any], ratio: float | None, **attributes: Any) -> Any:
    inputs = [x, np.array(0.5 if ratio is None else ratio, x.dtype), np.array(True)]
    return _prepared(framework, "Dropout", inputs, outputs=2, **attributes)


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_dropout_while_training(framework: str, ratio: float, dtype: str) -> None:
    x = np.random.default_rng(1).uniform(1.0, 2.0, (4, SIZE // 4)).astype(dtype)
    y, mask = _dropout(framework, x, ratio)()

    ratio = float(np.array(ratio, dtype))
    assert y.shape == mask.shape == x.shape
    assert y.dtype == x.dtype
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - (1.0 - ratio)) <= SIGMAS * math.sqrt(ratio * (1.0 - ratio) / x.size)
    expected = np.where(mask, _wide(x) / (1.0 - ratio), 0.0)
    np.testing.assert_allclose(_wide(y), expected, rtol=3e-3 if dtype == "float16" else 1e-6)
    if ratio:
        _assert_no_order(mask)


def test_dropout_repeats_with_its_seed(framework: str) -> None:
    # A seed begins a stream, which goes on from run to run: training drops other elements in every step.
    x = np.ones(200, np.float32)
    first = _dropout(framework, x, 0.5, seed=7)()[1]
    np.testing.assert_array_equal(first, _dropout(framework, x, 0.5, seed=7)()[1])
    assert (first != _dropout(framework, x, 0.5, seed=8)()[1]).any()
    free = _dropout(framework, x, 0.5)
    assert (free()[1] != free()[1]).any()


def test_dropout_otherwise_returns_its_input(framework: str) -> None:
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    y, mask = _prepared(framework, "Dropout", [x, np.array(0.5, np.float32), np.array(False)], outputs=2)()

    np.testing.assert_array_equal(y, x)
    assert mask.all()
    assert mask.shape == x.shape
