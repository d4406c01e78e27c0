// The cross entropy between a softmax and labels, ONNX's SoftmaxCrossEntropyLoss; see SoftmaxCrossEntropy in
// __init__.py.
#ifndef NATIVE_OPS_SOFTMAX_CROSSENTROPY_SOFTMAX_CROSSENTROPY_H
#define NATIVE_OPS_SOFTMAX_CROSSENTROPY_SOFTMAX_CROSSENTROPY_H

#include <deep500/operator.h>
#include <deep500/parallel.h>

#include <cmath>
#include <vector>

#include "exponential.h"
#include "shapes.h"

namespace native_ops {

// Neighbouring positions that are computed together where classes are not neighbours.
constexpr int64_t kEntropyLanes = 64;

// Some neighbouring positions of one image and their scores: class c of lane l is element c * stride + l.
template <typename T>
class Columns {
  public:
    using C = deep500::compute_type<T>;

    Columns(const T* scores, int64_t classes, int64_t stride, int64_t lanes)
        : scores_(scores), classes_(classes), stride_(stride), lanes_(lanes) {}

    // Calls use(element, class, lane) for all elements, neighbours together.
    template <typename Use>
    void each(Use use) const {
        if (stride_ == 1) {  // then there is one lane
#pragma omp simd
            for (int64_t c = 0; c < classes_; ++c) use(c, c, 0);
            return;
        }
        for (int64_t c = 0; c < classes_; ++c) {
            const int64_t first = c * stride_;
#pragma omp simd
            for (int64_t l = 0; l < lanes_; ++l) use(first + l, c, l);
        }
    }

    // Adds term(element, class, lane) over the classes to the sum of each lane.
    template <typename Term>
    void sum(C* sums, Term term) const {
        if (stride_ == 1) {
            C total = 0;
#pragma omp simd reduction(+ : total)
            for (int64_t c = 0; c < classes_; ++c) total += term(c, c, 0);
            sums[0] += total;
            return;
        }
        for (int64_t c = 0; c < classes_; ++c) {
            const int64_t first = c * stride_;
#pragma omp simd
            for (int64_t l = 0; l < lanes_; ++l) sums[l] += term(first + l, c, l);
        }
    }

    // Finds for each lane the largest score, and the logarithm of the sum of exp(score - largest).
    //
    // The largest score's own term is 1 and left out of the sum, for log1p: else a loss that is small beside 1 would be
    // 0. What is not finite makes a lane NaN.
    void normalise(C* largest, C* log_sum) const {
        int64_t place[kEntropyLanes];
        C rest[kEntropyLanes];
        for (int64_t l = 0; l < lanes_; ++l) {
            largest[l] = static_cast<C>(scores_[l]);
            place[l] = 0;
            rest[l] = 0;
        }
        find_largest(largest, place);
        const T* scores = scores_;
        sum(rest, [=, &place](int64_t element, int64_t c, int64_t l) {
            const C power = exponential(static_cast<C>(scores[element]) - largest[l]);
            return c == place[l] ? C(0) : power;
        });
        for (int64_t l = 0; l < lanes_; ++l) log_sum[l] = std::log1p(rest[l]) + (largest[l] - largest[l]);
    }

  private:
    void find_largest(C* largest, int64_t* place) const {
        if (stride_ == 1) {
            C found = largest[0];
#pragma omp simd reduction(max : found)
            for (int64_t c = 0; c < classes_; ++c) {
                const C score = static_cast<C>(scores_[c]);
                found = score > found ? score : found;
            }
            while (place[0] < classes_ - 1 && static_cast<C>(scores_[place[0]]) != found) ++place[0];
            largest[0] = found;
            return;
        }
        for (int64_t c = 1; c < classes_; ++c) {
            const T* row = scores_ + c * stride_;
#pragma omp simd
            for (int64_t l = 0; l < lanes_; ++l) {
                const C score = static_cast<C>(row[l]);
                const bool takes = score > largest[l];
                largest[l] = takes ? score : largest[l];
                place[l] = takes ? c : place[l];
            }
        }
    }

    const T* scores_;
    int64_t classes_, stride_, lanes_;
};

struct SoftmaxCrossEntropy {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes = deep500::attributes(
        deep500::text("reduction", "mean"), deep500::integer("ignore_index", std::numeric_limits<int64_t>::min()));

    template <typename T>
    static void forward(deep500::View<const T> scores, deep500::View<const int64_t> labels,
                        deep500::Optional<const T> weights, deep500::View<T> loss, deep500::View<T> log_prob,
                        deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        const EntropyShapes shapes(scores, labels, weights, loss, attributes);
        deep500::require_same_shape(scores, log_prob, "scores", "log_prob");
        shapes.check_labels(labels);
        std::vector<double> losses(static_cast<size_t>(shapes.positions()));
        each_part(shapes, [&](int64_t position, int64_t lanes) {
            C largest[kEntropyLanes], log_sum[kEntropyLanes];
            const T* from = scores.data() + shapes.first(position);
            T* to = log_prob.data() + shapes.first(position);
            const Columns<T> columns(from, shapes.classes, shapes.pixels, lanes);
            columns.normalise(largest, log_sum);
            columns.each([&](int64_t element, int64_t, int64_t l) {
                to[element] = T((static_cast<C>(from[element]) - largest[l]) - log_sum[l]);
            });
            for (int64_t l = 0; l < lanes; ++l) {
                const int64_t label = labels[position + l];
                if (!shapes.is_counted(label)) continue;
                const C score = static_cast<C>(from[label * shapes.pixels + l]);
                losses[static_cast<size_t>(position + l)] =
                    -static_cast<double>((score - largest[l]) - log_sum[l]) * weight_of(weights, label);
            }
        });
        if (shapes.reduction == Reduction::kNone) {
            for (int64_t i = 0; i < shapes.positions(); ++i) loss[i] = T(losses[static_cast<size_t>(i)]);
        } else {
            loss[0] = T(sum_of(losses) / divisor(shapes, labels, weights));
        }
    }

    template <typename T>
    static void backward(deep500::Optional<const T> by_loss, deep500::Optional<const T> by_log_prob,
                         deep500::View<const T> scores, deep500::View<const int64_t> labels,
                         deep500::Optional<const T> weights, deep500::View<const T> loss,
                         deep500::View<const T> log_prob, deep500::Optional<T> by_scores,
                         deep500::Optional<T> by_weights, deep500::Attributes attributes) {
        const EntropyShapes shapes(scores, labels, weights, loss, attributes);
        deep500::require_same_shape(scores, log_prob, "scores", "log_prob");
        shapes.check_labels(labels);
        const double whole = divisor(shapes, labels, weights);
        std::vector<double> picked(static_cast<size_t>(by_weights ? shapes.positions() : 0));
        each_part(shapes, [&](int64_t position, int64_t lanes) {
            const Gradient<T> gradient = {shapes, position, lanes, scores, log_prob};
            if (by_weights) gradient.pick(labels, picked.data() + position);
            if (by_scores) gradient.write(by_loss, by_log_prob, labels, weights, whole, by_scores);
        });
        if (by_weights) sum_weights(shapes, by_loss, labels, weights, picked, whole, by_weights);
    }

  private:
    // What one part of the positions contributes to the gradients.
    template <typename T>
    struct Gradient {
        using C = deep500::compute_type<T>;
        const EntropyShapes& shapes;
        int64_t position, lanes;
        const deep500::View<const T>&scores, &log_prob;

        int64_t first() const { return shapes.first(position); }
        Columns<T> columns() const { return Columns<T>(scores.data() + first(), shapes.classes, shapes.pixels, lanes); }
        // Calls use(log), where log(element, lane) is the logarithm of the softmax: the output, or, where that was
        // rounded to 16 bits, computed again.
        template <typename Use>
        void with_log(Use use) const {
            if constexpr (std::is_same<T, C>::value) {
                const T* from = log_prob.data() + first();
                use([from](int64_t element, int64_t) { return from[element]; });
            } else {
                C largest[kEntropyLanes], log_sum[kEntropyLanes];
                columns().normalise(largest, log_sum);
                const T* from = scores.data() + first();
                use([&, from](int64_t element, int64_t l) {
                    return (static_cast<C>(from[element]) - largest[l]) - log_sum[l];
                });
            }
        }
        // Looks up the logarithm of each label's probability.
        void pick(const deep500::View<const int64_t>& labels, double* picked) const {
            with_log([&](auto log) {
                for (int64_t l = 0; l < lanes; ++l) {
                    const int64_t label = labels[position + l];
                    if (shapes.is_counted(label)) picked[l] = static_cast<double>(log(label * shapes.pixels + l, l));
                }
            });
        }
        // With h the gradient by log_prob, and share that by a label's loss times its weight, the gradient by a score
        // is h - p sum(h) + share p; for the label's own, share (p - 1), which expm1 computes without cancellation.
        void write(const deep500::Optional<const T>& by_loss, const deep500::Optional<const T>& by_log_prob,
                   const deep500::View<const int64_t>& labels, const deep500::Optional<const T>& weights, double whole,
                   const deep500::View<T>& by_scores) const {
            C share[kEntropyLanes] = {}, sum[kEntropyLanes] = {};
            bool counts[kEntropyLanes] = {};  // else the gradient is 0, also where a probability is NaN
            const bool is_single = shapes.reduction != Reduction::kNone;
            for (int64_t l = 0; l < lanes && by_loss; ++l) {
                const int64_t label = labels[position + l];
                counts[l] = shapes.is_counted(label);
                if (!counts[l]) continue;
                const double each = static_cast<double>(static_cast<C>(by_loss[is_single ? 0 : position + l]));
                share[l] = static_cast<C>(each / whole * weight_of(weights, label));
            }
            const T* h = by_log_prob ? by_log_prob.data() + first() : nullptr;
            T* to = by_scores.data() + first();
            const Columns<T> all = columns();
            if (h != nullptr)
                all.sum(sum, [=](int64_t element, int64_t, int64_t) { return static_cast<C>(h[element]); });
            with_log([&](auto log) {
                if (h == nullptr) {
                    all.each([&](int64_t element, int64_t, int64_t l) {
                        to[element] = T(counts[l] ? exponential(log(element, l)) * share[l] : C(0));
                    });
                } else {
                    all.each([&](int64_t element, int64_t, int64_t l) {
                        const C p = exponential(log(element, l));
                        to[element] = T(static_cast<C>(h[element]) + p * (share[l] - sum[l]));
                    });
                }
                for (int64_t l = 0; l < lanes; ++l) {
                    const int64_t label = labels[position + l];
                    if (!shapes.is_counted(label)) continue;
                    const int64_t element = label * shapes.pixels + l;
                    const C value = share[l] * std::expm1(log(element, l));
                    const C other =
                        h == nullptr ? C(0) : static_cast<C>(h[element]) - exponential(log(element, l)) * sum[l];
                    to[element] = T(value + other);
                }
            });
        }
    };

    template <typename T>
    static double weight_of(const deep500::Optional<const T>& weights, int64_t label) {
        return weights ? static_cast<double>(static_cast<deep500::compute_type<T>>(weights[label])) : 1.0;
    }
    static double sum_of(const std::vector<double>& values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return sum;
    }
    // By what the sum of all losses is divided: in the mean, the weights of all labels that count.
    template <typename T>
    static double divisor(const EntropyShapes& shapes, const deep500::View<const int64_t>& labels,
                          const deep500::Optional<const T>& weights) {
        if (shapes.reduction != Reduction::kMean) return 1;
        double sum = 0;
        for (const int64_t label : labels) {
            if (shapes.is_counted(label)) sum += weight_of(weights, label);
        }
        return sum;
    }
    // Calls use(position, lanes) for parts of all positions, from several threads.
    template <typename Use>
    static void each_part(const EntropyShapes& shapes, Use&& use) {
        if (shapes.pixels == 0) return;
        const int64_t lanes = std::min(kEntropyLanes, shapes.pixels), parts = (shapes.pixels + lanes - 1) / lanes;
        const double steps = static_cast<double>(shapes.classes * lanes);
        deep500::parallel_for(shapes.images * parts, steps, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t pixel = i % parts * lanes;
                use(i / parts * shapes.pixels + pixel, std::min(lanes, shapes.pixels - pixel));
            }
        });
    }
    // The gradient by the weights: a label's loss without its weight; in the mean, less the mean, for their sum is the
    // divisor.
    template <typename T>
    static void sum_weights(const EntropyShapes& shapes, const deep500::Optional<const T>& by_loss,
                            const deep500::View<const int64_t>& labels, const deep500::Optional<const T>& weights,
                            const std::vector<double>& picked, double whole, const deep500::View<T>& by_weights) {
        std::vector<double> sums(static_cast<size_t>(shapes.classes), 0.0);
        double mean = 0;
        for (int64_t i = 0; i < labels.size() && shapes.reduction == Reduction::kMean; ++i) {
            if (shapes.is_counted(labels[i]))
                mean -= picked[static_cast<size_t>(i)] * weight_of(weights, labels[i]) / whole;
        }
        for (int64_t i = 0; i < labels.size() && by_loss; ++i) {
            if (!shapes.is_counted(labels[i])) continue;
            const int64_t place = shapes.reduction == Reduction::kNone ? i : 0;
            const double each = static_cast<double>(static_cast<deep500::compute_type<T>>(by_loss[place])) / whole;
            sums[static_cast<size_t>(labels[i])] -= each * (picked[static_cast<size_t>(i)] + mean);
        }
        for (int64_t c = 0; c < shapes.classes; ++c) by_weights[c] = T(sums[static_cast<size_t>(c)]);
    }
};

}  // namespace native_ops

#endif
