// Feature-wise linear modulation: y = gain * x^power * scale + shift, and the sums of y over its rows.
//
// x is [N, M], scale [M], shift [N], y [N, M], totals [M].
#include <deep500/operator.h>

using deep500::Attributes;
using deep500::View;

struct Film {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16>();
    static constexpr auto attributes = deep500::attributes(deep500::real("gain", 1.0), deep500::integer("power", 2));
    static constexpr bool backward_reads_outputs = false;

    template <typename C>
    static C raised(C base, int64_t power) {
        C result = 1;
        for (; power > 0; --power) result *= base;
        return result;
    }

    template <typename T>
    static void forward(View<const T> x, View<const T> scale, View<const T> shift, View<T> y, View<T> totals,
                        Attributes attributes) {
        using C = deep500::compute_type<T>;
        deep500::require(x.rank() == 2 && scale.size() == x.shape(1) && shift.size() == x.shape(0),
                         "scale must have an element for each column of x, and shift one for each row");
        const C gain = static_cast<C>(attributes.real("gain"));
        const int64_t power = attributes.integer("power");
        for (int64_t j = 0; j < x.shape(1); ++j) {
            C total = 0;
            for (int64_t i = 0; i < x.shape(0); ++i) {
                const C value = gain * raised<C>(x(i, j), power) * C(scale[j]) + C(shift[i]);
                y(i, j) = value;
                total += value;
            }
            totals[j] = total;
        }
    }

    template <typename T>
    static void backward(View<const T> y_gradient, View<const T> totals_gradient, View<const T> x, View<const T> scale,
                         View<const T> shift, View<T> x_gradient, View<T> scale_gradient, View<T> shift_gradient,
                         Attributes attributes) {
        using C = deep500::compute_type<T>;
        const C gain = static_cast<C>(attributes.real("gain"));
        const int64_t power = attributes.integer("power");
        const auto incoming = [&](int64_t i, int64_t j) { return C(y_gradient(i, j)) + C(totals_gradient[j]); };
        for (int64_t i = 0; i < shift.size(); ++i) {
            C by_shift = 0;
            for (int64_t j = 0; j < scale.size(); ++j) {
                x_gradient(i, j) = gain * C(power) * raised<C>(x(i, j), power - 1) * C(scale[j]) * incoming(i, j);
                by_shift += incoming(i, j);
            }
            shift_gradient[i] = by_shift;
        }
        for (int64_t j = 0; j < scale.size(); ++j) {
            C by_scale = 0;
            for (int64_t i = 0; i < shift.size(); ++i) by_scale += gain * raised<C>(x(i, j), power) * incoming(i, j);
            scale_gradient[j] = by_scale;
        }
    }
};
D500_OPERATOR(film, Film)
