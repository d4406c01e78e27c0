#include <deep500/cuda.h>

#include "adam_step.h"

namespace native_ops {

// The step lies on the device. A number below 1, which is none, gives NaN: nobody waits to be told.
template <typename C>
__global__ void divisors_kernel(double beta1, double beta2, const int64_t* step, AdamDivisors<C>* divisors) {
    const C none = static_cast<C>(NAN);
    if (deep500::first_item() > 0) return;
    *divisors = *step >= 1 ? adam_divisors<C>(beta1, beta2, *step) : AdamDivisors<C>{none, none};
}

template <typename T, typename C>
__global__ void adam_kernel(AdamFactors<C> factors, const AdamDivisors<C>* known, const T* parameter, const T* gradient,
                            const C* first, const C* second, T* new_parameter, C* new_first, C* new_second,
                            int64_t size) {
    const AdamDivisors<C> divisors = *known;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        C m = first[i], v = second[i];
        new_parameter[i] =
            T(adam_element(factors, divisors, static_cast<C>(parameter[i]), static_cast<C>(gradient[i]), m, v));
        new_first[i] = m;
        new_second[i] = v;
    }
}

struct AdamStepCuda : AdamStep {
    template <typename T>
    static void forward_cuda(deep500::View<const T> parameter, deep500::View<const T> gradient,
                             deep500::View<const deep500::compute_type<T>> first,
                             deep500::View<const deep500::compute_type<T>> second, deep500::View<const int64_t> step,
                             deep500::View<T> new_parameter, deep500::View<deep500::compute_type<T>> new_first,
                             deep500::View<deep500::compute_type<T>> new_second, deep500::Attributes attributes,
                             deep500::Stream stream) {
        using C = deep500::compute_type<T>;
        check(parameter, gradient, first, second, step, new_parameter, new_first, new_second);
        const deep500::DeviceBuffer<AdamDivisors<C>> divisors(1, stream);
        deep500::launch(divisors_kernel<C>, 1, stream, attributes.real("beta1"), attributes.real("beta2"), step.data(),
                        divisors.data());
        deep500::launch(adam_kernel<T, C>, parameter.size(), stream, adam_factors<C>(attributes), divisors.data(),
                        parameter.data(), gradient.data(), first.data(), second.data(), new_parameter.data(),
                        new_first.data(), new_second.data(), parameter.size());
    }
};

}  // namespace native_ops

D500_OPERATOR(adam_step, native_ops::AdamStepCuda)
