#include <deep500/cuda.h>

#include "conv2d.h"

namespace native_ops {

// Neighbouring threads compute neighbouring outputs, and read neighbouring elements of x where the stride is 1.
template <typename T>
__global__ void convolve_kernel(ConvShapes shapes, const T* x, const T* weight, const T* bias, T* y, int64_t size) {
    using C = deep500::compute_type<T>;
    const int64_t maps = shapes.maps * shapes.groups;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        const int64_t column = i % shapes.columns.output, row = i / shapes.columns.output % shapes.rows.output;
        const int64_t map = i / shapes.output_size() % maps, image = i / shapes.output_size() / maps;
        const int64_t first = (image * shapes.groups + map / shapes.maps) * shapes.channels;
        C sum = 0;
        for (int64_t c = 0; c < shapes.channels; ++c) {
            const T* from = x + (first + c) * shapes.image_size();
            const T* factors = weight + (map * shapes.channels + c) * shapes.kernel_size();
            for (int64_t k = 0; k < shapes.rows.kernel; ++k) {
                const int64_t at = shapes.rows.place(row, k);
                if (at < 0 || at >= shapes.rows.size) continue;
                for (int64_t l = 0; l < shapes.columns.kernel; ++l) {
                    const int64_t to = shapes.columns.place(column, l);
                    if (to < 0 || to >= shapes.columns.size) continue;
                    sum += static_cast<C>(from[at * shapes.columns.size + to]) *
                           static_cast<C>(factors[k * shapes.columns.kernel + l]);
                }
            }
        }
        y[i] = T(bias != nullptr ? sum + static_cast<C>(bias[map]) : sum);
    }
}

// The window whose element k is a place of the input; -1 where there is none.
__device__ inline int64_t window_of(const deep500::WindowAxis& axis, int64_t place, int64_t k) {
    const int64_t distance = place + axis.begin - k * axis.dilation;
    if (distance < 0 || distance % axis.stride != 0) return -1;
    return distance / axis.stride < axis.output ? distance / axis.stride : -1;
}

// Each thread gathers what its elements of x contributed to.
template <typename T>
__global__ void by_input_kernel(ConvShapes shapes, const T* y_gradient, const T* weight, T* x_gradient, int64_t size) {
    using C = deep500::compute_type<T>;
    const int64_t channels = shapes.channels * shapes.groups;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        const int64_t column = i % shapes.columns.size, row = i / shapes.columns.size % shapes.rows.size;
        const int64_t channel = i / shapes.image_size() % channels, image = i / shapes.image_size() / channels;
        const int64_t first = channel / shapes.channels * shapes.maps;
        C sum = 0;
        for (int64_t m = first; m < first + shapes.maps; ++m) {
            const T* from = y_gradient + (image * shapes.maps * shapes.groups + m) * shapes.output_size();
            const T* factors = weight + (m * shapes.channels + channel % shapes.channels) * shapes.kernel_size();
            for (int64_t k = 0; k < shapes.rows.kernel; ++k) {
                const int64_t at = window_of(shapes.rows, row, k);
                if (at < 0) continue;
                for (int64_t l = 0; l < shapes.columns.kernel; ++l) {
                    const int64_t to = window_of(shapes.columns, column, l);
                    if (to < 0) continue;
                    sum += static_cast<C>(from[at * shapes.columns.output + to]) *
                           static_cast<C>(factors[k * shapes.columns.kernel + l]);
                }
            }
        }
        x_gradient[i] = T(sum);
    }
}

// A block for each weight sums over images and places: each thread in C, all together in double.
template <typename T>
__global__ void by_weight_kernel(ConvShapes shapes, const T* y_gradient, const T* x, T* weight_gradient, int64_t size) {
    using C = deep500::compute_type<T>;
    const int64_t products = shapes.images * shapes.output_size();
    for (int64_t i = blockIdx.x; i < size; i += gridDim.x) {
        const int64_t l = i % shapes.columns.kernel, k = i / shapes.columns.kernel % shapes.rows.kernel;
        const int64_t c = i / shapes.kernel_size() % shapes.channels, map = i / shapes.kernel_size() / shapes.channels;
        C sum = 0;
        for (int64_t p = threadIdx.x; p < products; p += blockDim.x) {
            const int64_t image = p / shapes.output_size(), place = p % shapes.output_size();
            const int64_t row = shapes.rows.place(place / shapes.columns.output, k);
            const int64_t column = shapes.columns.place(place % shapes.columns.output, l);
            if (row < 0 || row >= shapes.rows.size || column < 0 || column >= shapes.columns.size) continue;
            const int64_t channel = (image * shapes.groups + map / shapes.maps) * shapes.channels + c;
            const int64_t gradient = image * shapes.maps * shapes.groups + map;
            sum += static_cast<C>(y_gradient[gradient * shapes.output_size() + place]) *
                   static_cast<C>(x[channel * shapes.image_size() + row * shapes.columns.size + column]);
        }
        const double total = deep500::block_sum(static_cast<double>(sum));
        if (threadIdx.x == 0) weight_gradient[i] = T(total);
    }
}

// A block for each feature map.
template <typename T>
__global__ void by_bias_kernel(ConvShapes shapes, const T* y_gradient, T* bias_gradient) {
    const int64_t maps = shapes.maps * shapes.groups;
    for (int64_t map = blockIdx.x; map < maps; map += gridDim.x) {
        double sum = 0;
        for (int64_t p = threadIdx.x; p < shapes.images * shapes.output_size(); p += blockDim.x) {
            const int64_t image = p / shapes.output_size(), place = p % shapes.output_size();
            sum +=
                static_cast<deep500::compute_type<T>>(y_gradient[(image * maps + map) * shapes.output_size() + place]);
        }
        sum = deep500::block_sum(sum);
        if (threadIdx.x == 0) bias_gradient[map] = T(sum);
    }
}

struct Conv2dCuda : Conv2d {
    template <typename T>
    static void forward_cuda(deep500::View<const T> x, deep500::View<const T> weight, deep500::Optional<const T> bias,
                             deep500::View<T> y, deep500::Attributes attributes, deep500::Stream stream) {
        const ConvShapes shapes(x, weight, bias, y, attributes);
        const T* added = bias ? bias.data() : nullptr;
        deep500::launch(convolve_kernel<T>, y.size(), stream, shapes, x.data(), weight.data(), added, y.data(),
                        y.size());
    }

    template <typename T>
    static void backward_cuda(deep500::View<const T> y_gradient, deep500::View<const T> x,
                              deep500::View<const T> weight, deep500::Optional<const T> bias,
                              deep500::Optional<T> x_gradient, deep500::Optional<T> weight_gradient,
                              deep500::Optional<T> bias_gradient, deep500::Attributes attributes,
                              deep500::Stream stream) {
        const ConvShapes shapes(x, weight, bias, y_gradient, attributes);
        if (x_gradient) {
            deep500::launch(by_input_kernel<T>, x_gradient.size(), stream, shapes, y_gradient.data(), weight.data(),
                            x_gradient.data(), x_gradient.size());
        }
        if (weight_gradient) {
            deep500::launch_blocks(by_weight_kernel<T>, weight_gradient.size(), stream, shapes, y_gradient.data(),
                                   x.data(), weight_gradient.data(), weight_gradient.size());
        }
        if (bias_gradient) {
            deep500::launch_blocks(by_bias_kernel<T>, bias_gradient.size(), stream, shapes, y_gradient.data(),
                                   bias_gradient.data());
        }
    }
};

}  // namespace native_ops

D500_OPERATOR(conv2d, native_ops::Conv2dCuda)
