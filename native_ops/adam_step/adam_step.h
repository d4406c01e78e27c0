// One step of Adam in a single pass over the parameter; see AdamStep in __init__.py.
#ifndef NATIVE_OPS_ADAM_STEP_ADAM_STEP_H
#define NATIVE_OPS_ADAM_STEP_ADAM_STEP_H

#include <deep500/operator.h>
#include <deep500/parallel.h>

#include <cmath>

namespace native_ops {

// What is the same for all elements, each rounded once to the dtype that the moments have.
template <typename C>
struct AdamFactors {
    C learning_rate, beta1, beta2, rest1, rest2, epsilon;
};

// The divisors that make the moments unbiased.
template <typename C>
struct AdamDivisors {
    C first, second;
};

template <typename C>
AdamFactors<C> adam_factors(const deep500::Attributes& attributes) {
    const double beta1 = attributes.real("beta1"), beta2 = attributes.real("beta2");
    return {static_cast<C>(attributes.real("learning_rate")),
            static_cast<C>(beta1),
            static_cast<C>(beta2),
            static_cast<C>(1 - beta1),
            static_cast<C>(1 - beta2),
            static_cast<C>(attributes.real("epsilon"))};
}

template <typename C>
D500_HOST_DEVICE inline AdamDivisors<C> adam_divisors(double beta1, double beta2, int64_t step) {
    const double t = static_cast<double>(step);
    return {static_cast<C>(1 - std::pow(beta1, t)), static_cast<C>(1 - std::pow(beta2, t))};
}

// Updates one element. The operations and their order are those of deep500's AdamOptimizer.
template <typename C>
D500_HOST_DEVICE inline C adam_element(const AdamFactors<C>& factors, const AdamDivisors<C>& divisors, C parameter,
                                       C gradient, C& first, C& second) {
    first = factors.beta1 * first + factors.rest1 * gradient;
    second = factors.beta2 * second + factors.rest2 * (gradient * gradient);
    const C root = std::sqrt(second / divisors.second);
    return parameter - factors.learning_rate * (first / divisors.first) / (root + factors.epsilon);
}

struct AdamStep {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes =
        deep500::attributes(deep500::real("learning_rate", 0.001), deep500::real("beta1", 0.9),
                            deep500::real("beta2", 0.999), deep500::real("epsilon", 1e-8));

    // Moments are float for 16-bit parameters: in 16 bits, beta2 * v would not change v.
    template <typename T>
    static void forward(deep500::View<const T> parameter, deep500::View<const T> gradient,
                        deep500::View<const deep500::compute_type<T>> first,
                        deep500::View<const deep500::compute_type<T>> second, deep500::View<const int64_t> step,
                        deep500::View<T> new_parameter, deep500::View<deep500::compute_type<T>> new_first,
                        deep500::View<deep500::compute_type<T>> new_second, deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        check(parameter, gradient, first, second, step, new_parameter, new_first, new_second);
        deep500::require(step[0] >= 1, "step is ", step[0], ", accepted are numbers from 1");
        const AdamFactors<C> factors = adam_factors<C>(attributes);
        const AdamDivisors<C> divisors = adam_divisors<C>(attributes.real("beta1"), attributes.real("beta2"), step[0]);
        const T *old = parameter.data(), *slope = gradient.data();
        const C *old_first = first.data(), *old_second = second.data();
        T* to = new_parameter.data();
        C *to_first = new_first.data(), *to_second = new_second.data();
        deep500::parallel_for(parameter.size(), 2, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) {
                C m = old_first[i], v = old_second[i];
                to[i] = T(adam_element(factors, divisors, static_cast<C>(old[i]), static_cast<C>(slope[i]), m, v));
                to_first[i] = m;
                to_second[i] = v;
            }
        });
    }

  protected:
    template <typename P, typename M, typename S, typename Q, typename N>
    static void check(const P& parameter, const P& gradient, const M& first, const M& second, const S& step,
                      const Q& new_parameter, const N& new_first, const N& new_second) {
        deep500::require_same_shape(parameter, gradient, "the parameter", "its gradient");
        deep500::require_same_shape(parameter, first, "the parameter", "m");
        deep500::require_same_shape(parameter, second, "the parameter", "v");
        deep500::require_same_shape(parameter, new_parameter, "the parameter", "the new parameter");
        deep500::require_same_shape(parameter, new_first, "the parameter", "the new m");
        deep500::require_same_shape(parameter, new_second, "the parameter", "the new v");
        deep500::require(step.size() == 1, "step has ", step.size(), " elements, accepted is one");
    }
};

}  // namespace native_ops

#endif
