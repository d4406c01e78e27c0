"""The C++ headers: 16-bit floats against NumPy's and ml_dtypes' own, views, second derivatives, code for CUDA."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.custom.native_op import NativeOp
from deep500.operators.native.binding import make_caller
from tests.conformance.native_calls import Call, Tensor

CONVERSIONS = """
#include <deep500/operator.h>
using deep500::View;

template <typename Small>
struct Conversions {
    static void forward(View<const float> x, View<const Small> small, View<Small> rounded, View<float> widened,
                        View<Small> facts) {
        for (int64_t i = 0; i < x.size(); ++i) rounded[i] = x[i];
        for (int64_t i = 0; i < small.size(); ++i) widened[i] = small[i];
        using limits = std::numeric_limits<Small>;
        Small sum = 1;
        sum += 2;
        sum -= 0.5;
        sum *= 4.0f;
        sum /= int8_t(5);
        const Small all[] = {limits::min(), limits::max(), limits::lowest(), limits::epsilon(), limits::infinity(),
                             limits::quiet_NaN(), sum, -sum, Small(3) + Small(4), Small(true)};
        for (int i = 0; i < 10; ++i) facts[i] = all[i];
    }
};
D500_OPERATOR(conversions, Conversions<deep500::SMALL>)
"""

SECOND = """
#include <deep500/operator.h>
using deep500::Optional;
using deep500::View;

struct Cube {  // y = x^3
    static constexpr auto dtypes = deep500::dtypes<double>();
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(View<const T> x, View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
    }
    template <typename T>
    static void backward(View<const T> g, View<const T> x, View<T> x_gradient) {
        for (int64_t i = 0; i < x.size(); ++i) x_gradient[i] = 3 * g[i] * x[i] * x[i];
    }
    template <typename T>
    static void second(View<const T> h, View<const T> g, View<const T> x, View<T> g_gradient, View<T> x_gradient) {
        for (int64_t i = 0; i < x.size(); ++i) g_gradient[i] = 3 * h[i] * x[i] * x[i];
        for (int64_t i = 0; i < x.size(); ++i) x_gradient[i] = 6 * h[i] * g[i] * x[i];
    }
};
D500_OPERATOR(cube, Cube)
"""

CUDA = """
#include <deep500/deep500.h>
using deep500::View;

template <typename T>
__global__ void scale(View<const T> x, View<T> y, deep500::compute_type<T> factor) {
    const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (i < x.shape(0) * x.shape(-1)) y(i / x.shape(1), i % x.shape(1)) = factor * x[i];
}

struct Scale {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes = deep500::attributes(deep500::real("factor", 2.0));

    template <typename T>
    static void forward(View<const T> x, View<T> y, deep500::Attributes a) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = static_cast<deep500::compute_type<T>>(a.real("factor")) * x[i];
    }
    template <typename T>
    static void forward_cuda(View<const T> x, View<T> y, deep500::Attributes a, deep500::Stream stream) {
        if (x.size() > 0) scale<T><<<(x.size() + 255) / 256, 256, 0, stream>>>(x, y, a.real("factor"));
    }
};
D500_OPERATOR(scale, Scale)
"""


def caller(op: NativeOp, which: Any, count: int, wanted: Any) -> Any:
    """Return a function of the library; `wanted` says for every output which input it resembles, None for none."""

    def resolve(shapes: Any, dtypes: Any) -> Any:
        return [None if i is None else (shapes[i], dtypes[i]) for i in wanted]

    kinds = op.library.description.attributes
    return make_caller(op.library.symbol(which), op.name, count, op.attributes, kinds, resolve, always_tuple=True)


def floats_around_every_one_of(dtype: Any) -> Any:
    """Return for all numbers of a 16-bit dtype: itself, those beside it in float32, and the middles between two."""
    numbers = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float32)
    finite = np.sort(numbers[np.isfinite(numbers)])
    with np.errstate(invalid="ignore", over="ignore"):
        middles = (finite[:-1].astype(np.float64) + finite[1:]).astype(np.float32) / np.float32(2)
        beside = [np.nextafter(values, np.float32(s) * np.inf) for values in (finite, middles) for s in (-1, 1)]
    extremes = np.array([np.inf, -np.inf, np.nan, -np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45, 0.0, -0.0], np.float32)
    return np.concatenate([numbers, middles, *beside, extremes])


@pytest.mark.parametrize(("name", "dtype"), [("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16)])
def test_small_floats_round_as_those_of_numpy(name: str, dtype: Any) -> None:
    op = compile_custom_cppop_inline(
        "conversions",
        CONVERSIONS,
        additional_definitions={"SMALL": name},
        infer=lambda shapes, dtypes: ([shapes[0], shapes[1], (10,)], [name, "float32", name]),
    )
    x = floats_around_every_one_of(dtype)
    small = np.arange(2**16, dtype=np.uint16).view(dtype)
    rounded, widened, facts = op(x, small)

    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(dtype)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(rounded.view(np.uint16)[number], expected.view(np.uint16)[number])
    assert np.isnan(rounded[~number].astype(np.float32)).all()
    np.testing.assert_array_equal(widened, small.astype(np.float32))
    limits = ml_dtypes.finfo(dtype)
    assert [float(f) for f in facts[:4]] == [
        float(v) for v in (limits.smallest_normal, limits.max, limits.min, limits.eps)
    ]
    assert float(facts[4]) == np.inf
    assert np.isnan(float(facts[5]))
    assert facts[6:].tolist() == [np.dtype(dtype).type(2.0), -2.0, 7.0, 1.0]


def test_second_derivatives() -> None:
    op = compile_custom_cppop_inline("cube", SECOND)
    x, g, h = np.array([1.0, 2.0]), np.array([1.0, -1.0]), np.array([0.5, 3.0])

    assert op.library.description.twice_differentiable
    by_g, by_x, by_y = caller(op, "second", 4, (1, 2, 3))(h, g, x, x)
    np.testing.assert_allclose(by_g, 3 * h * x * x)
    np.testing.assert_allclose(by_x, 6 * h * g * x)
    assert by_y.tolist() == [0.0, 0.0]  # the backward does not read y
    by_g, by_x, by_y = caller(op, "second", 4, (None, 2, None))(h, g, x, None)
    assert by_g is by_y is None
    np.testing.assert_allclose(by_x, 6 * h * g * x)
    by_g, by_x, _ = caller(op, "second", 4, (2, 2, None))(None, g, x, None)  # nobody knows h
    assert by_g.tolist() == by_x.tolist() == [0.0, 0.0]


def test_what_the_border_refuses() -> None:
    op = compile_custom_cppop_inline("cube", SECOND)
    x = np.ones(2)

    with pytest.raises(OperatorError, match="cube: 2 inputs were given, accepted are 3"):
        caller(op, "backward", 2, (0,))(x, x)
    with pytest.raises(OperatorError, match="cube: 2 outputs were given, accepted are 1"):
        caller(op, "backward", 3, (0, 0))(x, x, x)
    with pytest.raises(OperatorError, match="inputs 0 and 2, a gradient and its tensor, differ in shape"):
        caller(op, "backward", 3, (1,))(x[:1], x, x[:1:-1])
    with pytest.raises(OperatorError, match="output 0 and input 1, a gradient and its tensor, differ in shape"):
        caller(op, "backward", 3, (0,))(np.ones(3), x, None)
    with pytest.raises(OperatorError, match=r"no variant for tensors of \(float32\); accepted are \(float64\)"):
        caller(op, "forward", 1, (0,))(np.ones(2, np.float32))
    with pytest.raises(OperatorError, match="input 0 is absent; it has to be given"):
        caller(op, "backward", 3, (1,))(None, x, None)  # of what shape are the zeros?


def test_equal_names_in_two_libraries_do_not_meet() -> None:
    source = """
    #include <deep500/operator.h>
    template <int n> struct Counter { static int& value() { static int v = n; return v; } };
    struct Count { static void forward(deep500::View<const int32_t> x, deep500::View<int32_t> y) {
        y[0] = ADDED + Counter<0>::value()++; } };
    D500_OPERATOR(count, Count)
    """
    one = compile_custom_cppop_inline("count", source, additional_definitions={"ADDED": 100})
    other = compile_custom_cppop_inline("count", source, additional_definitions={"ADDED": 200})
    x = np.zeros(1, np.int32)

    assert [int(op(x)[0]) for op in (one, other, one, other)] == [100, 200, 101, 201]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_cuda_compiles_and_says_when_there_is_no_device() -> None:
    op = compile_custom_cppop_inline("scale", CUDA, is_cuda=True)

    assert op.library.description.devices == ("cpu", "cuda")
    assert op(np.ones((1, 2), np.float16)).tolist() == [[2.0, 2.0]]
    if not Path("/dev/nvidia0").exists():
        assert run_on_cuda(op) == (1, b"there is no CUDA device that can be used: ")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("factor * x[i]", "undefined * x[i]", r"scale.cu:8: identifier \"undefined\" is undefined"),
        (
            "forward_cuda(View<const T> x, View<T> y",
            "forward_cuda(View<T> y, View<const T> x",
            r"deep500: a function for",
        ),
    ],
)
def test_errors_in_cuda(old: str, new: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_custom_cppop_inline("scale", CUDA.replace(old, new), is_cuda=True)


def test_cpu_code_on_cuda_is_refused() -> None:
    status, message = run_on_cuda(compile_custom_cppop_inline("cube", SECOND), whole=True)

    assert status == 3
    assert message.startswith(b"the operator has no code for CUDA: write forward_cuda")


def run_on_cuda(op: NativeOp, *, whole: bool = False) -> tuple[int, bytes]:
    """Call a forward with one input and one output, of the first dtype, that claim to be on a GPU."""
    shape = (ctypes.c_int64 * 2)(1, 2)
    bits = 64 if op.library.description.dtypes[0] == "float64" else 32
    tensors = [Tensor(4096, (2, 0), 2, (2, bits, 1, 0), shape, None, 0) for _ in range(2)]
    error = ctypes.create_string_buffer(500)
    call = Call(
        1, 2, 1, 1, 0, 0, ctypes.pointer(tensors[0]), ctypes.pointer(tensors[1]), None, None,
        ctypes.addressof(error), 500,
    )  # fmt: skip
    forward = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(op.library.symbol("forward"))
    status = forward(ctypes.addressof(call))
    return status, error.value if whole else error.value[: error.value.find(b": ") + 2]
