"""C++ operators that several tests compile; they lie in the user's cache after the first time."""

from __future__ import annotations

from typing import Any

from deep500.operators.custom.compiling import compile_custom_cppop_inline
from deep500.operators.custom.native_op import NativeOp

#: Three inputs, one of them optional and one of whole numbers; two outputs; attributes of every kind.
MIXED = """
#include <deep500/operator.h>

using deep500::Attributes;
using deep500::Optional;
using deep500::View;

// y = scale * x + shift (where there is one), n = number of labels plus the sum of the offsets.
struct Mixed {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes =
        deep500::attributes(deep500::real("scale", 2.0), deep500::integer("extra", -1), deep500::text("mode", "a\\"b"),
                            deep500::integers("offsets"), deep500::reals("factors"));

    template <typename T>
    static void check(View<const T> x, Optional<const T> shift) {
        if (shift) deep500::require_same_shape(x, shift, "x", "shift");
    }
    template <typename T>
    static deep500::compute_type<T> scale(const Attributes& attributes) {
        double result = attributes.real("scale");
        for (const double factor : attributes.reals("factors")) result *= factor;
        if (attributes.text("mode") == "negative") result = -result;
        return static_cast<deep500::compute_type<T>>(result);
    }

    template <typename T>
    static void forward(View<const T> x, View<const int64_t> labels, Optional<const T> shift, View<T> y,
                        View<int64_t> n, Attributes attributes) {
        check(x, shift);
        const auto factor = scale<T>(attributes);
        for (int64_t i = 0; i < x.size(); ++i) y[i] = factor * x[i] + (shift ? shift[i] : T(0));
        n[0] = attributes.integer("extra");
        for (const int64_t label : labels) n[0] += label;
        for (const int64_t offset : attributes.integers("offsets")) n[0] += offset;
    }
    template <typename T>
    static void backward(View<const T> y_gradient, View<const T> x, View<const int64_t> labels,
                         Optional<const T> shift, View<const T> y, View<const int64_t> n, View<T> x_gradient,
                         Optional<T> shift_gradient, Attributes attributes) {
        check(x, shift);
        const auto factor = scale<T>(attributes);
        for (int64_t i = 0; i < x.size(); ++i) {
            x_gradient[i] = factor * y_gradient[i];
            if (shift_gradient) shift_gradient[i] = y_gradient[i];
        }
    }
};
D500_OPERATOR(mixed, Mixed)
"""

#: Cubes, sums over the last dimension, uses x(i, j); its backward does not read the outputs.
CUBE_SUM = """
#include <deep500/operator.h>

struct CubeSum {
    static constexpr auto dtypes = deep500::dtypes<float, double>();
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> cubes, deep500::View<T> sums) {
        deep500::require(x.rank() == 2, "x has rank ", x.rank(), ", accepted is 2");
        for (int64_t i = 0; i < x.shape(0); ++i) {
            sums[i] = 0;
            for (int64_t j = 0; j < x.shape(-1); ++j) {
                cubes(i, j) = x(i, j) * x(i, j) * x(i, j);
                sums[i] += x(i, j);
            }
        }
    }
    template <typename T>
    static void backward(deep500::View<const T> cubes_gradient, deep500::View<const T> sums_gradient,
                         deep500::View<const T> x, deep500::View<T> x_gradient) {
        for (int64_t i = 0; i < x.shape(0); ++i) {
            for (int64_t j = 0; j < x.shape(1); ++j) {
                x_gradient(i, j) = 3 * x(i, j) * x(i, j) * cubes_gradient(i, j) + sums_gradient[i];
            }
        }
    }
};
D500_OPERATOR(cube_sum, CubeSum)
"""

#: Copies; fails as its attribute says.
FAILING = """
#include <deep500/operator.h>

struct Failing {
    static void forward(deep500::View<const float> x, deep500::View<float> y, deep500::Attributes attributes) {
        const std::string how = attributes.text("how");
        if (how == "runtime_error") throw std::runtime_error("the pump is broken");
        if (how == "argument") throw deep500::ArgumentError("x must be warm");
        if (how == "number") throw 7;
        if (how == "memory") throw std::bad_alloc();
        if (how == "long") throw std::runtime_error(std::string(100000, 'x'));
        if (how == "attribute") attributes.integer("size");
        if (how == "kind") attributes.integer("how");
        if (how == "dimension") x.shape(5);
        if (how == "bound") y[x.size()] = x[0];
        for (int64_t i = 0; i < x.size(); ++i) y[i] = x[i];
    }
    static constexpr auto attributes = deep500::attributes(deep500::text("how", ""));
};
D500_OPERATOR(failing, Failing)
"""

#: Seed 002's class, as printed there.
IPOWOP_CLASS = """
template<typename T>
class ipowop : public deep500::CustomOperator {
protected:
    int m_len;
public:
    ipowop(int len) : m_len(len) {}
    virtual ~ipowop() {}
    void forward(const T *input, T *output) {
        #pragma omp parallel for
        for (int i = 0; i < m_len; ++i)
            output[i] = std::pow(input[i], DPOWER);
    }
    void backward(const T *nextop_grad,
                  const T *fwd_input_tensor,
                  const T *fwd_output_tensor,
                  T *input_tensor_grad) {
        #pragma omp parallel for
        for (int i = 0; i < m_len; ++i) {
            input_tensor_grad[i] = nextop_grad[i] * DPOWER *
                std::pow(fwd_input_tensor[i], DPOWER - 1);
        }
    }
};
"""

#: What the published examples have around it.
IPOWOP = f"""
#include <cmath>
#include <deep500/deep500.h>
{IPOWOP_CLASS}
D500_EXPORTED void *create_new_op(deep500::tensor_t *input_descriptors,
                                  int num_inputs,
                                  deep500::tensor_t *output_descriptors,
                                  int num_outputs) {{
    size_t totalsz = 1;
    for (int i = 0; i < input_descriptors[0].dims; ++i)
        totalsz *= input_descriptors[0].sizes[i];
    return new ipowop<DTYPE>(totalsz);
}}
D500_REGISTER_OP(ipowop<DTYPE>);
"""


def mixed(**attributes: Any) -> NativeOp:
    """Return MIXED; it says itself what its outputs are like."""
    return compile_custom_cppop_inline(
        "mixed",
        MIXED,
        attributes={"offsets": (), "factors": (), **attributes},
        infer=lambda shapes, dtypes: ([shapes[0], (1,)], [dtypes[0], "int64"]),
    )


def cube_sum() -> NativeOp:
    """Return CUBE_SUM."""
    return compile_custom_cppop_inline(
        "cube_sum", CUBE_SUM, infer=lambda shapes, dtypes: ([shapes[0], shapes[0][:1]], [dtypes[0]] * 2)
    )


def failing(how: str) -> NativeOp:
    """Return FAILING, with its indices checked."""
    return compile_custom_cppop_inline("failing", FAILING, attributes={"how": how}, flags=["-DD500_CHECK_BOUNDS"])
