#include <deep500/cuda.h>

#include "batchnorm.h"

namespace native_ops {

// A channel's elements, of which a block's threads each take some.
struct ChannelElements {
    int64_t channel, channels, pixels, count;

    __device__ int64_t operator[](int64_t k) const { return (k / pixels * channels + channel) * pixels + k % pixels; }
};

// As Moments in the code for processors, of one channel.
template <typename T, typename P>
struct ChannelMoments {
    double mean, variance, inverse;

    __device__ ChannelMoments(const NormShapes& shapes, const ChannelElements& at, const T* x, const P* given_mean,
                              const P* given_variance) {
        if (shapes.is_training) {
            double sum = 0;
            for (int64_t k = threadIdx.x; k < at.count; k += blockDim.x)
                sum += static_cast<double>(static_cast<P>(x[at[k]]));
            mean = deep500::block_sum(sum) / static_cast<double>(at.count);
            sum = 0;
            for (int64_t k = threadIdx.x; k < at.count; k += blockDim.x) {
                const double deviation = static_cast<double>(static_cast<P>(x[at[k]])) - mean;
                sum += deviation * deviation;
            }
            variance = deep500::block_sum(sum) / static_cast<double>(at.count);
        } else {
            mean = static_cast<double>(given_mean[at.channel]);
            variance = static_cast<double>(given_variance[at.channel]);
        }
        inverse = 1 / sqrt(variance + shapes.epsilon);
    }
    // x less the mean, which has more digits than P.
    __device__ P centred(P x) const {
        const P high = static_cast<P>(mean), low = static_cast<P>(mean - static_cast<double>(high));
        return (x - high) - low;
    }
};

template <typename P>
struct NormOperands {
    const P *scale, *bias, *mean, *variance;
};

// A block for each channel.
template <typename T, typename P>
__global__ void normalise_kernel(NormShapes shapes, const T* x, NormOperands<P> given, T* y, P* running_mean,
                                 P* running_variance) {
    for (int64_t c = blockIdx.x; c < shapes.channels; c += gridDim.x) {
        const ChannelElements at = {c, shapes.channels, shapes.pixels, shapes.count()};
        const ChannelMoments<T, P> moments(shapes, at, x, given.mean, given.variance);
        const P slope = static_cast<P>(moments.inverse * static_cast<double>(given.scale[c]));
        for (int64_t k = threadIdx.x; k < at.count; k += blockDim.x) {
            y[at[k]] = T(moments.centred(static_cast<P>(x[at[k]])) * slope + given.bias[c]);
        }
        if (threadIdx.x != 0) continue;
        const double kept = shapes.is_training ? shapes.momentum : 1, mean = given.mean[c],
                     variance = given.variance[c];
        running_mean[c] = static_cast<P>(kept == 1 ? mean : mean * kept + moments.mean * (1 - kept));
        running_variance[c] = static_cast<P>(kept == 1 ? variance : variance * kept + moments.variance * (1 - kept));
    }
}

template <typename T, typename P>
struct NormGradients {
    const T* y;
    const P *running_mean, *running_variance;
    T* by_x;  // may be null
    P *by_scale, *by_bias, *by_mean, *by_variance;
};

// As Slopes in the code for processors, a block for each channel.
template <typename T, typename P>
__global__ void differentiate_kernel(NormShapes shapes, const T* x, NormOperands<P> given,
                                     NormGradients<T, P> gradient) {
    for (int64_t c = blockIdx.x; c < shapes.channels; c += gridDim.x) {
        const ChannelElements at = {c, shapes.channels, shapes.pixels, shapes.count()};
        const ChannelMoments<T, P> moments(shapes, at, x, given.mean, given.variance);
        double by_bias = 0, by_scale = 0;
        for (int64_t k = threadIdx.x; k < at.count; k += blockDim.x) {
            const double g = static_cast<double>(static_cast<P>(gradient.y[at[k]]));
            by_bias += g;
            by_scale += g * (static_cast<double>(static_cast<P>(x[at[k]])) - moments.mean);
        }
        by_bias = deep500::block_sum(by_bias);
        by_scale = deep500::block_sum(by_scale) * moments.inverse;
        const double count = static_cast<double>(at.count > 0 ? at.count : 1), part = (1 - shapes.momentum) / count;
        const double slope = moments.inverse * static_cast<double>(given.scale[c]);
        const double by_mean_now = gradient.running_mean[c], by_variance_now = gradient.running_variance[c];
        double along = 0, shift = 0;
        double by_mean = by_mean_now - slope * by_bias;
        double by_variance = by_variance_now - slope * by_scale * moments.inverse / 2;
        if (shapes.is_training) {
            along = 2 * part * by_variance_now - slope * by_scale * moments.inverse / count;
            shift = part * by_mean_now - slope * by_bias / count;
            by_mean = shapes.momentum * by_mean_now;
            by_variance = shapes.momentum * by_variance_now;
        }
        for (int64_t k = threadIdx.x; k < at.count && gradient.by_x != nullptr; k += blockDim.x) {
            const P value = static_cast<P>(slope) * static_cast<P>(gradient.y[at[k]]) + static_cast<P>(shift);
            gradient.by_x[at[k]] = T(value + static_cast<P>(along) * moments.centred(static_cast<P>(x[at[k]])));
        }
        if (threadIdx.x != 0) continue;
        gradient.by_scale[c] = static_cast<P>(by_scale);
        gradient.by_bias[c] = static_cast<P>(by_bias);
        gradient.by_mean[c] = static_cast<P>(by_mean);
        gradient.by_variance[c] = static_cast<P>(by_variance);
    }
}

struct BatchNormCuda : BatchNorm {
    template <typename T>
    static void forward_cuda(deep500::View<const T> x, deep500::View<const deep500::compute_type<T>> scale,
                             deep500::View<const deep500::compute_type<T>> bias,
                             deep500::View<const deep500::compute_type<T>> mean,
                             deep500::View<const deep500::compute_type<T>> variance, deep500::View<T> y,
                             deep500::View<deep500::compute_type<T>> running_mean,
                             deep500::View<deep500::compute_type<T>> running_variance, deep500::Attributes attributes,
                             deep500::Stream stream) {
        using P = deep500::compute_type<T>;
        const NormShapes shapes(x, scale, bias, mean, variance, attributes);
        deep500::require_same_shape(x, y, "x", "y");
        shapes.check(running_mean, "the running mean");
        shapes.check(running_variance, "the running variance");
        const NormOperands<P> given = {scale.data(), bias.data(), mean.data(), variance.data()};
        deep500::launch_blocks(normalise_kernel<T, P>, shapes.channels, stream, shapes, x.data(), given, y.data(),
                               running_mean.data(), running_variance.data());
    }

    template <typename T>
    static void backward_cuda(
        deep500::View<const T> y_gradient, deep500::View<const deep500::compute_type<T>> running_mean_gradient,
        deep500::View<const deep500::compute_type<T>> running_variance_gradient, deep500::View<const T> x,
        deep500::View<const deep500::compute_type<T>> scale, deep500::View<const deep500::compute_type<T>> bias,
        deep500::View<const deep500::compute_type<T>> mean, deep500::View<const deep500::compute_type<T>> variance,
        deep500::Optional<T> by_x, deep500::View<deep500::compute_type<T>> by_scale,
        deep500::View<deep500::compute_type<T>> by_bias, deep500::View<deep500::compute_type<T>> by_mean,
        deep500::View<deep500::compute_type<T>> by_variance, deep500::Attributes attributes, deep500::Stream stream) {
        using P = deep500::compute_type<T>;
        const NormShapes shapes(x, scale, bias, mean, variance, attributes);
        deep500::require_same_shape(x, y_gradient, "x", "the gradient by y");
        shapes.check(running_mean_gradient, "the gradient by the running mean");
        shapes.check(running_variance_gradient, "the gradient by the running variance");
        const NormOperands<P> given = {scale.data(), bias.data(), mean.data(), variance.data()};
        const NormGradients<T, P> gradient = {y_gradient.data(),
                                              running_mean_gradient.data(),
                                              running_variance_gradient.data(),
                                              by_x ? by_x.data() : nullptr,
                                              by_scale.data(),
                                              by_bias.data(),
                                              by_mean.data(),
                                              by_variance.data()};
        deep500::launch_blocks(differentiate_kernel<T, P>, shapes.channels, stream, shapes, x.data(), given, gradient);
    }
};

}  // namespace native_ops

D500_OPERATOR(batchnorm, native_ops::BatchNormCuda)
