// The k elements of largest magnitude, and where they are; see SparseTopK in __init__.py.
#ifndef NATIVE_OPS_SPARSE_TOPK_SPARSE_TOPK_H
#define NATIVE_OPS_SPARSE_TOPK_SPARSE_TOPK_H

#include <deep500/operator.h>
#include <deep500/parallel.h>

#include <array>
#include <vector>

#include "magnitude.h"

namespace native_ops {

struct SparseTopK {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes = deep500::attributes(deep500::integer("k"));
    static constexpr bool backward_reads_inputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> values, deep500::View<int64_t> indices,
                        deep500::Attributes attributes) {
        const int64_t k = checked_number(x, values, indices, attributes);
        if (k == 0) return;
        const auto selection = select(x, k);
        // Every part of x counts what it takes; the sums say where each part's elements go.
        const int64_t parts = (x.size() + kPart - 1) / kPart;
        std::vector<Passed> passed(static_cast<size_t>(parts));
        each_part(x, [&](int64_t part, int64_t begin, int64_t end) {
            Passed& counts = passed[static_cast<size_t>(part)];
            for (int64_t i = begin; i < end; ++i) {
                const auto size = magnitude(x[i]);
                counts.above += size > selection.threshold;
                counts.equal += size == selection.threshold;
            }
        });
        Passed sum = {0, 0};
        for (Passed& counts : passed) {
            const Passed before = sum;
            sum.above += counts.above;
            sum.equal += counts.equal;
            counts = before;
        }
        each_part(x, [&](int64_t part, int64_t begin, int64_t end) {
            Passed counts = passed[static_cast<size_t>(part)];
            for (int64_t i = begin; i < end; ++i) {
                const auto size = magnitude(x[i]);
                if (size < selection.threshold) continue;
                const int64_t to = target(size, selection, counts);
                if (to >= 0) {
                    values[to] = x[i];
                    indices[to] = i;
                }
                counts.above += size > selection.threshold;
                counts.equal += size == selection.threshold;
            }
        });
    }

    // Hands each value's gradient to its element; all others have none.
    template <typename T>
    static void backward(deep500::View<const T> values_gradient, deep500::View<const T>,
                         deep500::View<const int64_t> indices, deep500::View<T> x_gradient) {
        deep500::require_same_shape(values_gradient, indices, "the gradient by values", "indices");
        std::fill_n(x_gradient.data(), x_gradient.size(), T(0));
        for (int64_t i = 0; i < indices.size(); ++i) {
            deep500::require(0 <= indices[i] && indices[i] < x_gradient.size(), "indices has the entry ", indices[i],
                             " for a tensor of ", x_gradient.size(), " elements");
            x_gradient[indices[i]] = values_gradient[i];
        }
    }

  private:
    static constexpr int64_t kPart = 16384;  // elements

    // Finds the magnitude of the k-th largest element, digit by digit.
    template <typename T>
    static Selection<typename FloatBits<T>::type> select(deep500::View<const T> x, int64_t k) {
        using Bits = typename FloatBits<T>::type;
        Selection<Bits> selection = {0, k};
        for (int shift = static_cast<int>(8 * sizeof(Bits)) - kDigitBits; shift >= 0; shift -= kDigitBits) {
            std::array<int64_t, kDigits> counts = {};
            std::mutex mutex;
            deep500::parallel_for(x.size(), 1, [&](int64_t begin, int64_t end) {
                std::array<int64_t, kDigits> own = {};
                for (int64_t i = begin; i < end; ++i) {
                    const Bits size = magnitude(x[i]);
                    if (begins_with(size, selection.threshold, shift))
                        ++own[static_cast<size_t>(digit_of(size, shift))];
                }
                const std::lock_guard<std::mutex> lock(mutex);
                for (size_t digit = 0; digit < own.size(); ++digit) counts[digit] += own[digit];
            });
            refine(selection, counts.data(), shift);
        }
        return selection;
    }

    // Calls use(part, begin, end) for parts of x, from several threads.
    template <typename T, typename Use>
    static void each_part(deep500::View<const T> x, Use&& use) {
        deep500::parallel_for((x.size() + kPart - 1) / kPart, kPart, [&](int64_t first, int64_t last) {
            for (int64_t part = first; part < last; ++part)
                use(part, part * kPart, std::min((part + 1) * kPart, x.size()));
        });
    }
};

}  // namespace native_ops

#endif
