"""Native operators that the adapter's tests compile; they lie in the user's cache after the first time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.operators.custom import NativeOp, compile_custom_cppop_inline

#: u = factor * x^power, v_i = (i + 1) * sum(x) * sum(y); x is [n, m], y is [k], the whole numbers are only counted.
BLEND = """
#include <deep500/operator.h>

using deep500::Attributes;
using deep500::View;

struct Blend {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16>();
    static constexpr auto attributes = deep500::attributes(deep500::real("factor", 2.0), deep500::integer("power", 2));

    template <typename T>
    static deep500::compute_type<T> sum(View<const T> x) {
        deep500::compute_type<T> result = 0;
        for (int64_t i = 0; i < x.size(); ++i) result += static_cast<deep500::compute_type<T>>(x[i]);
        return result;
    }
    template <typename C>
    static C power(C x, int64_t exponent) {
        C result = 1;
        for (int64_t i = 0; i < exponent; ++i) result *= x;
        return result;
    }

    template <typename T>
    static void forward(View<const T> x, View<const T> y, View<const int64_t>, View<T> u, View<T> v, Attributes a) {
        using C = deep500::compute_type<T>;
        for (int64_t i = 0; i < y.size(); ++i) {
            if (static_cast<C>(y[i]) == C(77)) throw std::runtime_error("y must not be 77");
        }
        const C factor = static_cast<C>(a.real("factor")), total = sum<T>(x) * sum<T>(y);
        for (int64_t i = 0; i < x.size(); ++i) u[i] = T(factor * power<C>(x[i], a.integer("power")));
        for (int64_t i = 0; i < v.size(); ++i) v[i] = T(C(i + 1) * total);
    }
    template <typename T>
    static void backward(View<const T> gu, View<const T> gv, View<const T> x, View<const T> y, View<const int64_t>,
                         View<const T>, View<const T>, View<T> gx, View<T> gy, Attributes a) {
        using C = deep500::compute_type<T>;
        const C factor = static_cast<C>(a.real("factor")) * WRONG;
        C weight = 0;
        for (int64_t i = 0; i < gv.size(); ++i) weight += C(i + 1) * static_cast<C>(gv[i]);
        const C by_x = weight * sum<T>(y), by_y = weight * sum<T>(x);
        const int64_t n = a.integer("power");
        for (int64_t i = 0; i < x.size(); ++i) {
            gx[i] = T(factor * C(n) * power<C>(x[i], n - 1) * static_cast<C>(gu[i]) + by_x);
        }
        for (int64_t i = 0; i < y.size(); ++i) gy[i] = T(by_y);
    }
};
D500_OPERATOR(blend, Blend)
"""

#: y = exp(x): a backward that reads only the output, and a second one.
EXPONENTIAL = """
#include <cmath>
#include <deep500/operator.h>

using deep500::View;

struct Exponential {
    static constexpr auto dtypes = deep500::dtypes<float, double>();
    static constexpr bool backward_reads_inputs = false;

    template <typename T>
    static void forward(View<const T> x, View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = std::exp(x[i]);
    }
    template <typename T>
    static void backward(View<const T> gy, View<const T> y, View<T> gx) {
        for (int64_t i = 0; i < y.size(); ++i) gx[i] = gy[i] * y[i];
    }
    template <typename T>
    static void second(View<const T> ggx, View<const T> gy, View<const T> y, View<T> by_gy, View<T> by_y) {
        for (int64_t i = 0; i < y.size(); ++i) by_gy[i] = ggx[i] * y[i];
        for (int64_t i = 0; i < y.size(); ++i) by_y[i] = ggx[i] * gy[i];
    }
};
D500_OPERATOR(exponential, Exponential)
"""

#: y = x + shift, where there is a shift; no backward.
SHIFTED = """
#include <deep500/operator.h>

struct Shifted {
    static void forward(deep500::View<const float> x, deep500::Optional<const float> shift, deep500::View<float> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + (shift ? shift[i] : 0.0f);
    }
};
D500_OPERATOR(shifted, Shifted)
"""

#: Returns its attributes, the text by its bytes.
ECHO = """
#include <deep500/operator.h>

using deep500::View;

struct Echo {
    static constexpr auto attributes =
        deep500::attributes(deep500::integer("whole"), deep500::real("number"), deep500::text("text"),
                            deep500::integers("wholes"), deep500::reals("numbers"));

    static void forward(View<const int64_t>, View<int64_t> whole, View<double> number, View<uint8_t> text,
                        View<int64_t> wholes, View<double> numbers, deep500::Attributes a) {
        whole[0] = a.integer("whole");
        number[0] = a.real("number");
        const std::string letters = a.text("text");
        deep500::require(text.size() == int64_t(letters.size()), "the text has ", letters.size(), " bytes");
        for (int64_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint8_t>(letters[i]);
        for (int64_t i = 0; i < wholes.size(); ++i) wholes[i] = a.integers("wholes")[i];
        for (int64_t i = 0; i < numbers.size(); ++i) numbers[i] = a.reals("numbers")[i];
    }
};
D500_OPERATOR(echo, Echo)
"""

#: By hand, in C: fails in ways that no header lets an operator fail in.
RAW = """
#include <deep500/abi.h>
#include <string.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* d5_raw_describe(void) {
    return R"({"abi_version": 1, "name": "raw", "inputs": 1, "outputs": 1, "dtypes": ["float32"], "devices": ["cpu"],
               "signatures": [[["float32"], ["float32"]]], "attributes": {}, "differentiable": true})";
}
EXPORTED int32_t d5_raw_forward(const d5_call* call) {
    const float* x = static_cast<const float*>(call->inputs[0].data);
    if (call->abi_version != 1 || call->input_count != 1 || call->output_count != 1) return D5_WRONG_ARGUMENTS;
    if (x[0] > 0) return static_cast<int32_t>(x[0]);  // without a reason
    if (x[0] < 0) memset(call->error, 'x', call->error_size_bytes);  // without an end
    return x[0] < 0 ? D5_FAILED : D5_OK;
}
"""


def blend_infer(shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Any, Any]:
    (n, m), (k,), _ = shapes
    if n < k:
        raise OperatorError("x has fewer rows than y has elements")
    return [(n, m), (max(n, k, 3) - 1,)], [dtypes[0], dtypes[0]]


@functools.cache
def blend(factor: float = 0.5, power: int = 3, *, is_wrong: bool = False) -> NativeOp:
    return compile_custom_cppop_inline(
        "blend",
        BLEND,
        attributes={"factor": factor, "power": power},
        infer=blend_infer,
        additional_definitions={"WRONG": "C(1.01)" if is_wrong else "C(1)"},
    )


@functools.cache
def exponential() -> NativeOp:
    return compile_custom_cppop_inline("exponential", EXPONENTIAL)


@functools.cache
def shifted() -> NativeOp:
    return compile_custom_cppop_inline("shifted", SHIFTED)


@functools.cache
def raw() -> NativeOp:
    return compile_custom_cppop_inline("raw", RAW + "// D500_OPERATOR(raw, Raw) would do all this\n")


def echo(**attributes: Any) -> NativeOp:
    text, wholes, numbers = attributes["text"], attributes["wholes"], attributes["numbers"]
    sizes = [(1,), (1,), (len(text.encode()),), (len(wholes),), (len(numbers),)]
    dtypes = ["int64", "float64", "uint8", "int64", "float64"]
    return compile_custom_cppop_inline("echo", ECHO, attributes=attributes, infer=lambda *_: (sizes, dtypes))


def blend_inputs(dtype: str = "float64", n: int = 3, k: int = 2) -> list[Any]:
    stream = np.random.default_rng(5)
    dtype_of = tf.as_dtype(dtype).as_numpy_dtype
    return [
        stream.standard_normal((n, 4)).astype(dtype_of),
        stream.standard_normal(k).astype(dtype_of),
        np.arange(5),
    ]


def traced(function: Callable[..., Any], *specifications: Any) -> Any:
    """Return a ``tf.function``, for any shapes that fit the specifications if there are some."""
    signature = [tf.TensorSpec(shape, dtype) for shape, dtype in specifications] or None
    return tf.function(lambda *inputs: function(*inputs), input_signature=signature, autograph=False)
