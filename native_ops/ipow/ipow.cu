#include <deep500/cuda.h>

#include "ipow.h"

namespace native_ops {

template <typename C>
__device__ C raised(C x, Exponent exponent) {
    C result = 1;
    for (uint64_t bits = exponent.magnitude; bits > 0; bits >>= 1) {
        if (bits & 1) result *= x;
        x *= x;
    }
    return exponent.is_negative ? C(1) / result : result;
}

// y = a * b * (factor * x^exponent), where a and b may be null and then are 1.
template <typename T>
__global__ void raise_kernel(const T* x, const T* a, const T* b, deep500::compute_type<T> factor, Exponent exponent,
                             T* y, int64_t size) {
    using C = deep500::compute_type<T>;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        C value = factor * raised(static_cast<C>(x[i]), exponent);
        if (b != nullptr) value *= static_cast<C>(b[i]);
        if (a != nullptr) value *= static_cast<C>(a[i]);
        y[i] = T(value);
    }
}

struct IPowCuda : IPow {
    template <typename T>
    static void forward_cuda(deep500::View<const T> x, deep500::View<T> y, deep500::Attributes attributes,
                             deep500::Stream stream) {
        deep500::require_same_shape(x, y, "x", "y");
        const T* none = nullptr;
        deep500::launch(raise_kernel<T>, x.size(), stream, x.data(), none, none, 1,
                        Exponent::of(attributes.integer("power")), y.data(), x.size());
    }

    template <typename T>
    static void backward_cuda(deep500::View<const T> y_gradient, deep500::View<const T> x, deep500::View<T> x_gradient,
                              deep500::Attributes attributes, deep500::Stream stream) {
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        const int64_t power = attributes.integer("power");
        if (power == 0) return deep500::fill_zeros(x_gradient, stream);
        const T* none = nullptr;
        deep500::launch(raise_kernel<T>, x.size(), stream, x.data(), y_gradient.data(), none, power,
                        Exponent::of(power).lowered(), x_gradient.data(), x.size());
    }

    template <typename T>
    static void second_cuda(deep500::View<const T> h, deep500::View<const T> y_gradient, deep500::View<const T> x,
                            deep500::View<T> by_y_gradient, deep500::View<T> by_x, deep500::Attributes attributes,
                            deep500::Stream stream) {
        using C = deep500::compute_type<T>;
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        backward_cuda<T>(h, x, by_y_gradient, attributes, stream);
        const int64_t power = attributes.integer("power");
        if (power == 0 || power == 1) return deep500::fill_zeros(by_x, stream);
        deep500::launch(raise_kernel<T>, x.size(), stream, x.data(), h.data(), y_gradient.data(),
                        static_cast<C>(power) * (static_cast<C>(power) - 1), Exponent::of(power).lowered().lowered(),
                        by_x.data(), x.size());
    }
};

}  // namespace native_ops

D500_OPERATOR(ipow, native_ops::IPowCuda)
