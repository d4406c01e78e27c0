"""What the PyTorch adapter's tests share: a few operators in C++, each compiled once for a user."""

from __future__ import annotations

from functools import cache
from typing import Any

from deep500.core.errors import OperatorError
from deep500.operators.custom import NativeOp, compile_custom_cppop_inline

IPOW = r"""
#include <deep500/operator.h>

struct IPow {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16>();
    static constexpr auto attributes = deep500::attributes(deep500::integer("power", 3), deep500::real("error", 0.0));
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static double power(T x, int64_t exponent) {
        double result = 1;
        for (; exponent > 0; --exponent) result *= static_cast<double>(static_cast<float>(x));
        return result;
    }
    static double power(double x, int64_t exponent) {
        double result = 1;
        for (; exponent > 0; --exponent) result *= x;
        return result;
    }
    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> y, deep500::Attributes attributes) {
        const int64_t n = attributes.integer("power");
        if (n < 0) throw std::domain_error("power is negative: " + std::to_string(n));
        for (int64_t i = 0; i < x.size(); ++i) y[i] = static_cast<T>(static_cast<float>(0)) + T(power(x[i], n));
    }
    template <typename T>
    static void backward(deep500::View<const T> g, deep500::View<const T> x, deep500::View<T> x_gradient,
                         deep500::Attributes attributes) {
        const int64_t n = attributes.integer("power");
        const double factor = n * (1 + attributes.real("error"));
        if (n == 1000) throw std::runtime_error("the backward is tired");
        for (int64_t i = 0; i < x.size(); ++i) x_gradient[i] = T(double(g[i]) * factor * power(x[i], n - 1));
    }
    template <typename T>
    static void second(deep500::View<const T> gg, deep500::View<const T> g, deep500::View<const T> x,
                       deep500::View<T> g_gradient, deep500::View<T> x_gradient, deep500::Attributes attributes) {
        const int64_t n = attributes.integer("power");
        for (int64_t i = 0; i < x.size(); ++i) {
            g_gradient[i] = T(double(gg[i]) * n * power(x[i], n - 1));
            x_gradient[i] = T(double(gg[i]) * double(g[i]) * n * (n - 1) * power(x[i], n - 2));
        }
    }
};
D500_OPERATOR(test_ipow, IPow)
"""

# Three inputs, one of integers, and two outputs of different shapes: y = scale * x * w[k], s = sum(y).
PICK = r"""
#include <deep500/operator.h>

struct Pick {
    static constexpr auto dtypes = deep500::dtypes<float, double>();
    static constexpr auto attributes = deep500::attributes(deep500::real("scale", 2.0));

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<const T> w, deep500::View<const int64_t> k,
                        deep500::View<T> y, deep500::View<T> s, deep500::Attributes attributes) {
        const T scale = static_cast<T>(attributes.real("scale"));
        s[0] = 0;
        for (int64_t i = 0; i < x.size(); ++i) {
            deep500::require(0 <= k[i] && k[i] < w.size(), "there is no w[", k[i], "]");
            y[i] = scale * x[i] * w[k[i]];
            s[0] += y[i];
        }
    }
    template <typename T>
    static void backward(deep500::Optional<const T> gy, deep500::View<const T> gs, deep500::View<const T> x,
                         deep500::View<const T> w, deep500::View<const int64_t> k, deep500::View<const T>,
                         deep500::View<const T>, deep500::View<T> gx, deep500::View<T> gw,
                         deep500::Attributes attributes) {
        const T scale = static_cast<T>(attributes.real("scale"));
        for (T& value : gw) value = 0;
        for (int64_t i = 0; i < x.size(); ++i) {
            const T g = (gy ? gy[i] : T(0)) + gs[0];
            gx[i] = g * scale * w[k[i]];
            gw[k[i]] += g * scale * x[i];
        }
    }
};
D500_OPERATOR(test_pick, Pick)
"""

# The backward reads no inputs: z = tanh(x + y), m = x + y > 0 as integers.
SQUASH = r"""
#include <cmath>
#include <deep500/operator.h>

struct Squash {
    static constexpr auto dtypes = deep500::dtypes<float, double>();
    static constexpr bool backward_reads_inputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<const T> y, deep500::View<T> z,
                        deep500::View<int32_t> m) {
        deep500::require_same_shape(x, y, "x", "y");
        for (int64_t i = 0; i < x.size(); ++i) {
            z[i] = std::tanh(x[i] + y[i]);
            m[i] = x[i] + y[i] > 0;
        }
    }
    template <typename T>
    static void backward(deep500::View<const T> g, deep500::View<const T> z, deep500::View<const int32_t>,
                         deep500::View<T> gx, deep500::View<T> gy) {
        for (int64_t i = 0; i < z.size(); ++i) gx[i] = gy[i] = g[i] * (1 - z[i] * z[i]);
    }
};
D500_OPERATOR(test_squash, Squash)
"""

# An input that may be absent, and no backward.
SHIFT = r"""
#include <deep500/operator.h>

struct Shift {
    static constexpr auto dtypes = deep500::dtypes<float, double>();

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::Optional<const T> by, deep500::View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] + (by ? by[i] : T(1));
    }
};
D500_OPERATOR(test_shift, Shift)
"""

# Complex numbers: y = x * (1 + 2i).
TURN = r"""
#include <deep500/operator.h>

struct Turn {
    static constexpr auto dtypes = deep500::dtypes<std::complex<float>, std::complex<double>>();

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> y) {
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i] * T(1, 2);
    }
};
D500_OPERATOR(test_turn, Turn)
"""


@cache
def _compiled(name: str, source: str) -> NativeOp:
    return compile_custom_cppop_inline(name, source)


def ipow(power: int = 3, error: float = 0.0) -> NativeOp:
    """Return y = x**power, with second derivatives; the gradient is wrong by a factor of 1 + error."""
    return _compiled("test_ipow", IPOW).with_attributes(power=power, error=error)


def _infer_pick(shapes: Any, dtypes: Any) -> Any:
    if len(shapes[1]) != 1:
        raise OperatorError(f"w has the shape {shapes[1]}; accepted is one dimension.")
    return [shapes[0], ()], [dtypes[0], dtypes[0]]


def pick(scale: float = 2.0) -> NativeOp:
    """Return y, s = scale * x * w[k], sum(y)."""
    return NativeOp(_compiled("test_pick", PICK).library, {"scale": scale}, infer=_infer_pick)


def squash() -> NativeOp:
    """Return z, m = tanh(x + y), x + y > 0."""
    return _compiled("test_squash", SQUASH)


def shift() -> NativeOp:
    """Return y = x + by, or x + 1 where by is absent; without a backward."""
    return _compiled("test_shift", SHIFT)


def turn() -> NativeOp:
    """Return y = x * (1 + 2i) of complex numbers, without a backward."""
    return _compiled("test_turn", TURN)
