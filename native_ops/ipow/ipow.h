// y = x^power for a whole power, by squaring and multiplying; see IPow in __init__.py.
#ifndef NATIVE_OPS_IPOW_IPOW_H
#define NATIVE_OPS_IPOW_IPOW_H

#include <deep500/operator.h>
#include <deep500/parallel.h>

namespace native_ops {

// A whole exponent: x^magnitude, or 1 / x^magnitude. All 64-bit numbers, and those below them, are exponents.
struct Exponent {
    uint64_t magnitude;
    bool is_negative;

    static Exponent of(int64_t value) {
        const uint64_t bits = static_cast<uint64_t>(value);
        return {value < 0 ? ~bits + 1 : bits, value < 0};
    }
    // The exponent less 1.
    Exponent lowered() const {
        if (is_negative) return {magnitude + 1, true};
        return magnitude > 0 ? Exponent{magnitude - 1, false} : Exponent{1, true};
    }
};

template <int power, typename C>
inline C multiplied(C x) {
    static_assert(0 <= power && power <= 4, "larger powers are raised by squaring");
    const C square = x * x;
    if constexpr (power == 0) return C(1);
    if constexpr (power == 1) return x;
    if constexpr (power == 2) return square;
    if constexpr (power == 3) return square * x;
    return square * square;
}

// Calls use(i, x[i]^power) for all i of [begin, end).
template <int power, typename T, typename Use>
void raise_small(const T* x, int64_t begin, int64_t end, Use use) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) use(i, multiplied<power>(static_cast<deep500::compute_type<T>>(x[i])));
}

// The same for any exponent: a block of elements at a time, so that the loop over the exponent's bits is the outer one.
template <typename T, typename Use>
void raise_blocks(const T* x, int64_t begin, int64_t end, Exponent exponent, Use use) {
    using C = deep500::compute_type<T>;
    constexpr int64_t kBlock = 256;
    C base[kBlock], result[kBlock];
    for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t count = std::min(kBlock, end - first);
        for (int64_t i = 0; i < count; ++i) {
            base[i] = static_cast<C>(x[first + i]);
            result[i] = C(1);
        }
        for (uint64_t bits = exponent.magnitude; bits > 0; bits >>= 1) {
            if (bits & 1) {
                for (int64_t i = 0; i < count; ++i) result[i] *= base[i];
            }
            if (bits > 1) {
                for (int64_t i = 0; i < count; ++i) base[i] *= base[i];
            }
        }
        if (exponent.is_negative) {
            for (int64_t i = 0; i < count; ++i) result[i] = C(1) / result[i];
        }
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) use(first + i, result[i]);
    }
}

// Calls use(i, x[i]^exponent) for all i, from several threads.
template <typename T, typename Use>
void raise(deep500::View<const T> x, Exponent exponent, Use use) {
    const T* data = x.data();
    const uint64_t magnitude = exponent.is_negative ? UINT64_MAX : exponent.magnitude;  // no negative one is small
    deep500::parallel_for(x.size(), 1, [=](int64_t begin, int64_t end) {
        switch (magnitude) {  // out here, not once an element
            case 0:
                return raise_small<0>(data, begin, end, use);
            case 1:
                return raise_small<1>(data, begin, end, use);
            case 2:
                return raise_small<2>(data, begin, end, use);
            case 3:
                return raise_small<3>(data, begin, end, use);
            case 4:
                return raise_small<4>(data, begin, end, use);
            default:
                return raise_blocks(data, begin, end, exponent, use);
        }
    });
}

struct IPow {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes = deep500::attributes(deep500::integer("power"));
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> y, deep500::Attributes attributes) {
        deep500::require_same_shape(x, y, "x", "y");
        T* to = y.data();
        raise(x, Exponent::of(attributes.integer("power")), [to](int64_t i, auto value) { to[i] = T(value); });
    }

    // power * x^(power - 1); 0 for the power 0, whatever x is.
    template <typename T>
    static void backward(deep500::View<const T> y_gradient, deep500::View<const T> x, deep500::View<T> x_gradient,
                         deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        const int64_t power = attributes.integer("power");
        const T* from = y_gradient.data();
        T* to = x_gradient.data();
        if (power == 0) return std::fill_n(to, x.size(), T(0)), void();
        const C factor = static_cast<C>(power);
        raise(x, Exponent::of(power).lowered(),
              [=](int64_t i, C value) { to[i] = T(static_cast<C>(from[i]) * (factor * value)); });
    }

    // The derivative of h * y_gradient * power * x^(power - 1), where h is the gradient by x_gradient.
    template <typename T>
    static void second(deep500::View<const T> h, deep500::View<const T> y_gradient, deep500::View<const T> x,
                       deep500::View<T> by_y_gradient, deep500::View<T> by_x, deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        backward<T>(h, x, by_y_gradient, attributes);
        const int64_t power = attributes.integer("power");
        const T *from = y_gradient.data(), *other = h.data();
        T* to = by_x.data();
        if (power == 0 || power == 1) return std::fill_n(to, x.size(), T(0)), void();
        const C factor = static_cast<C>(power) * (static_cast<C>(power) - 1);
        raise(x, Exponent::of(power).lowered().lowered(), [=](int64_t i, C value) {
            to[i] = T(static_cast<C>(other[i]) * static_cast<C>(from[i]) * (factor * value));
        });
    }
};

}  // namespace native_ops

#endif
