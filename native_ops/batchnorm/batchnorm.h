// Normalisation of channels, ONNX's BatchNormalization; see BatchNorm in __init__.py.
#ifndef NATIVE_OPS_BATCHNORM_BATCHNORM_H
#define NATIVE_OPS_BATCHNORM_BATCHNORM_H

#include <deep500/operator.h>
#include <deep500/parallel.h>

#include <cmath>

namespace native_ops {

// The sizes of a call's tensors and its attributes, checked. x is [N, C, S]: S pixels of C channels of N images.
struct NormShapes {
    int64_t images, channels, pixels;
    double epsilon, momentum;
    bool is_training;

    template <typename X, typename P>
    NormShapes(const deep500::View<X>& x, const deep500::View<P>& scale, const deep500::View<P>& bias,
               const deep500::View<P>& mean, const deep500::View<P>& variance, const deep500::Attributes& attributes)
        : epsilon(attributes.real("epsilon")),
          momentum(attributes.real("momentum")),
          is_training(attributes.integer("training_mode") != 0) {
        deep500::require(x.rank() >= 1, "x is a scalar, accepted is [N, C, ...] or [N]");
        images = x.shape(0), channels = x.rank() == 1 ? 1 : x.shape(1), pixels = 1;
        for (int i = 2; i < x.rank(); ++i) pixels *= x.shape(i);
        check(scale, "scale");
        check(bias, "bias");
        check(mean, "the mean");
        check(variance, "the variance");
    }
    template <typename P>
    void check(const deep500::View<P>& tensor, const char* name) const {
        deep500::require(tensor.rank() == 1 && tensor.size() == channels, name, " has ", tensor.size(),
                         " elements, accepted is one for each of ", channels, " channels");
    }
    D500_HOST_DEVICE int64_t count() const { return images * pixels; }
};

// Channels that are computed together where a channel's elements are no neighbours.
constexpr int64_t kNormLanes = 64;

// Some neighbouring channels, and the elements of x that belong to them.
struct ChannelBlock {
    const NormShapes& shapes;
    int64_t first, lanes;

    // Calls use(element, lane) for all elements, neighbours together.
    template <typename Use>
    void each(Use use) const {
        for (int64_t image = 0; image < shapes.images; ++image) {
            const int64_t begin = (image * shapes.channels + first) * shapes.pixels;
            if (shapes.pixels == 1) {
#pragma omp simd
                for (int64_t l = 0; l < lanes; ++l) use(begin + l, l);
            } else {
#pragma omp simd
                for (int64_t p = 0; p < shapes.pixels; ++p) use(begin + p, 0);
            }
        }
    }
    // Returns the sum of term(element, lane) for every lane.
    template <typename Term>
    void sum(double* sums, Term term) const {
        std::fill_n(sums, lanes, 0.0);
        for (int64_t image = 0; image < shapes.images; ++image) {
            const int64_t begin = (image * shapes.channels + first) * shapes.pixels;
            if (shapes.pixels == 1) {
#pragma omp simd
                for (int64_t l = 0; l < lanes; ++l) sums[l] += term(begin + l, l);
                continue;
            }
            double total = 0;
#pragma omp simd reduction(+ : total)
            for (int64_t p = 0; p < shapes.pixels; ++p) total += term(begin + p, 0);
            sums[0] += total;
        }
    }

    // Calls use(block) for blocks of all channels, from several threads.
    template <typename Use>
    static void for_all(const NormShapes& shapes, Use&& use) {
        const int64_t lanes = shapes.pixels == 1 ? kNormLanes : 1;
        const double steps = static_cast<double>(shapes.count() * lanes) / 2;
        deep500::parallel_for((shapes.channels + lanes - 1) / lanes, steps, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                use(ChannelBlock{shapes, i * lanes, std::min(lanes, shapes.channels - i * lanes)});
            }
        });
    }
};

// Mean, variance and inverse deviation of each lane, those of the batch or those that were given. The variance is that
// of the deviations from the mean, for the difference of two large sums would leave no digits.
struct Moments {
    double mean[kNormLanes], variance[kNormLanes], inverse[kNormLanes];

    template <typename T, typename P>
    Moments(const ChannelBlock& block, const T* x, const P* given_mean, const P* given_variance) {
        using C = deep500::compute_type<T>;
        const NormShapes& shapes = block.shapes;
        if (shapes.is_training) {
            const double count = static_cast<double>(shapes.count());
            block.sum(mean, [=](int64_t i, int64_t) { return static_cast<double>(static_cast<C>(x[i])); });
            for (int64_t l = 0; l < block.lanes; ++l) mean[l] /= count;
            const double* centre = mean;
            block.sum(variance, [=](int64_t i, int64_t l) {
                const double deviation = static_cast<double>(static_cast<C>(x[i])) - centre[l];
                return deviation * deviation;
            });
            for (int64_t l = 0; l < block.lanes; ++l) variance[l] /= count;
        } else {
            for (int64_t l = 0; l < block.lanes; ++l) {
                mean[l] = static_cast<double>(given_mean[block.first + l]);
                variance[l] = static_cast<double>(given_variance[block.first + l]);
            }
        }
        for (int64_t l = 0; l < block.lanes; ++l) inverse[l] = 1 / std::sqrt(variance[l] + shapes.epsilon);
    }
};

// Subtracts a mean that has more digits than C: its two parts, one after the other.
template <typename C>
struct Centred {
    C high[kNormLanes], low[kNormLanes];

    explicit Centred(const double* mean, int64_t lanes) {
        for (int64_t l = 0; l < lanes; ++l) {
            high[l] = static_cast<C>(mean[l]);
            low[l] = static_cast<C>(mean[l] - static_cast<double>(high[l]));
        }
    }
    C operator()(C x, int64_t lane) const { return (x - high[lane]) - low[lane]; }
};

struct BatchNorm {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes = deep500::attributes(
        deep500::real("epsilon", 1e-5), deep500::real("momentum", 0.9), deep500::integer("training_mode", 0));
    static constexpr bool backward_reads_outputs = false;

    // P, the dtype of the parameters and statistics, is float for 16-bit x.
    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<const deep500::compute_type<T>> scale,
                        deep500::View<const deep500::compute_type<T>> bias,
                        deep500::View<const deep500::compute_type<T>> mean,
                        deep500::View<const deep500::compute_type<T>> variance, deep500::View<T> y,
                        deep500::View<deep500::compute_type<T>> running_mean,
                        deep500::View<deep500::compute_type<T>> running_variance, deep500::Attributes attributes) {
        using P = deep500::compute_type<T>;
        const NormShapes shapes(x, scale, bias, mean, variance, attributes);
        deep500::require_same_shape(x, y, "x", "y");
        shapes.check(running_mean, "the running mean");
        shapes.check(running_variance, "the running variance");
        const double kept = shapes.is_training ? shapes.momentum : 1;
        ChannelBlock::for_all(shapes, [&](const ChannelBlock& block) {
            const Moments moments(block, x.data(), mean.data(), variance.data());
            const Centred<P> centred(moments.mean, block.lanes);
            P slope[kNormLanes], shift[kNormLanes];
            for (int64_t l = 0; l < block.lanes; ++l) {
                const int64_t c = block.first + l;
                slope[l] = static_cast<P>(moments.inverse[l] * static_cast<double>(scale[c]));
                shift[l] = bias[c];
                running_mean[c] = mixed(mean[c], moments.mean[l], kept);
                running_variance[c] = mixed(variance[c], moments.variance[l], kept);
            }
            const T* from = x.data();
            T* to = y.data();
            block.each(
                [&](int64_t i, int64_t l) { to[i] = T(centred(static_cast<P>(from[i]), l) * slope[l] + shift[l]); });
        });
    }

    template <typename T>
    static void backward(
        deep500::View<const T> y_gradient, deep500::View<const deep500::compute_type<T>> running_mean_gradient,
        deep500::View<const deep500::compute_type<T>> running_variance_gradient, deep500::View<const T> x,
        deep500::View<const deep500::compute_type<T>> scale, deep500::View<const deep500::compute_type<T>> bias,
        deep500::View<const deep500::compute_type<T>> mean, deep500::View<const deep500::compute_type<T>> variance,
        deep500::Optional<T> by_x, deep500::View<deep500::compute_type<T>> by_scale,
        deep500::View<deep500::compute_type<T>> by_bias, deep500::View<deep500::compute_type<T>> by_mean,
        deep500::View<deep500::compute_type<T>> by_variance, deep500::Attributes attributes) {
        using P = deep500::compute_type<T>;
        const NormShapes shapes(x, scale, bias, mean, variance, attributes);
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        shapes.check(running_mean_gradient, "the gradient by the running mean");
        shapes.check(running_variance_gradient, "the gradient by the running variance");
        ChannelBlock::for_all(shapes, [&](const ChannelBlock& block) {
            const Moments moments(block, x.data(), mean.data(), variance.data());
            Slopes slopes(block, moments, x.data(), y_gradient.data(), scale.data());
            slopes.add_running(running_mean_gradient.data(), running_variance_gradient.data());
            for (int64_t l = 0; l < block.lanes; ++l) {
                const int64_t c = block.first + l;
                by_scale[c] = static_cast<P>(slopes.by_scale[l]);
                by_bias[c] = static_cast<P>(slopes.by_bias[l]);
                by_mean[c] = static_cast<P>(slopes.by_mean[l]);
                by_variance[c] = static_cast<P>(slopes.by_variance[l]);
            }
            if (by_x) slopes.write(x.data(), y_gradient.data(), by_x.data());
        });
    }

  private:
    template <typename P>
    static P mixed(P old, double now, double kept) {
        return kept == 1 ? old : static_cast<P>(static_cast<double>(old) * kept + now * (1 - kept));
    }

    // The gradients of a block: by_x = slope * y_gradient + along * (x - mean) + shift, where the last two are what x
    // changes through mean and variance.
    struct Slopes {
        const ChannelBlock& block;
        const Moments& moments;
        double by_scale[kNormLanes], by_bias[kNormLanes], by_mean[kNormLanes], by_variance[kNormLanes];
        double slope[kNormLanes], along[kNormLanes], shift[kNormLanes];

        template <typename T, typename P>
        Slopes(const ChannelBlock& channels, const Moments& known, const T* x, const T* y_gradient, const P* scale)
            : block(channels), moments(known) {
            using C = deep500::compute_type<T>;
            block.sum(by_bias, [=](int64_t i, int64_t) { return static_cast<double>(static_cast<C>(y_gradient[i])); });
            const double* centre = moments.mean;
            block.sum(by_scale, [=](int64_t i, int64_t l) {
                return static_cast<double>(static_cast<C>(y_gradient[i])) *
                       (static_cast<double>(static_cast<C>(x[i])) - centre[l]);
            });
            const double count = static_cast<double>(std::max<int64_t>(block.shapes.count(), 1));
            for (int64_t l = 0; l < block.lanes; ++l) {
                by_scale[l] *= moments.inverse[l];
                slope[l] = moments.inverse[l] * static_cast<double>(scale[block.first + l]);
                along[l] = -slope[l] * by_scale[l] * moments.inverse[l] / count;
                shift[l] = -slope[l] * by_bias[l] / count;
                by_mean[l] = -slope[l] * by_bias[l];
                by_variance[l] = -slope[l] * by_scale[l] * moments.inverse[l] / 2;
            }
        }

        // Adds what the running statistics' gradients contribute.
        template <typename P>
        void add_running(const P* mean_gradient, const P* variance_gradient) {
            const NormShapes& shapes = block.shapes;
            const double part = (1 - shapes.momentum) / static_cast<double>(std::max<int64_t>(shapes.count(), 1));
            for (int64_t l = 0; l < block.lanes; ++l) {
                const double by_mean_now = static_cast<double>(mean_gradient[block.first + l]);
                const double by_variance_now = static_cast<double>(variance_gradient[block.first + l]);
                if (shapes.is_training) {
                    along[l] += 2 * part * by_variance_now;
                    shift[l] += part * by_mean_now;
                    by_mean[l] = shapes.momentum * by_mean_now;
                    by_variance[l] = shapes.momentum * by_variance_now;
                } else {  // x has no part in the statistics
                    along[l] = shift[l] = 0;
                    by_mean[l] += by_mean_now;
                    by_variance[l] += by_variance_now;
                }
            }
        }

        template <typename T>
        void write(const T* x, const T* y_gradient, T* by_x) const {
            using C = deep500::compute_type<T>;
            const Centred<C> centred(moments.mean, block.lanes);
            C factor[kNormLanes], other[kNormLanes], added[kNormLanes];
            for (int64_t l = 0; l < block.lanes; ++l) {
                factor[l] = static_cast<C>(slope[l]);
                other[l] = static_cast<C>(along[l]);
                added[l] = static_cast<C>(shift[l]);
            }
            block.each([&](int64_t i, int64_t l) {
                const C value = factor[l] * static_cast<C>(y_gradient[i]) + added[l];
                by_x[i] = T(value + other[l] * centred(static_cast<C>(x[i]), l));
            });
        }
    };
};

}  // namespace native_ops

#endif
