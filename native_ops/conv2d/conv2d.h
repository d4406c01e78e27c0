// Direct convolution, ONNX's Conv with two spatial axes; see Conv2d in __init__.py. No matrix of columns is made: the
// kernel's taps read the images themselves, which planes.h lays out for them.
#ifndef NATIVE_OPS_CONV2D_CONV2D_H
#define NATIVE_OPS_CONV2D_CONV2D_H

#include <deep500/operator.h>
#include <deep500/parallel.h>
#include <deep500/tile.h>

#include "gradients.h"

namespace native_ops {

// y from the planes of some images.
template <typename T>
class ConvForward {
  public:
    using C = deep500::compute_type<T>;

    ConvForward(const ConvShapes& shapes, const Planes& planes, deep500::View<const T> weight)
        : shapes_(shapes), planes_(planes), bands_(shapes.maps), panels_(bands_.padded() * depth() * shapes.groups) {
        for (int64_t channel = 0; channel < shapes.channels; ++channel) {
            for (const Planes::Tap& tap : planes.taps()) {
                offsets_.push_back(channel * planes.channel_size() + tap.phase * planes.plane() + tap.shift);
            }
        }
        for (int64_t group = 0; group < shapes.groups; ++group) {
            for (int64_t i = 0; i < bands_.count(); ++i) {
                pack(weight.data() + group * shapes.maps * depth(), bands_[i], panel(group, bands_[i]));
            }
        }
    }

    // Number of tiles that run() computes for an image, and the steps that each takes.
    int64_t tiles() const { return shapes_.groups * bands_.count() * places_tiles(); }
    double steps() const { return static_cast<double>(depth()) * deep500::kTileRows * deep500::kTileVectors / 2; }

    // Computes one tile of an image's feature maps.
    void run(int64_t tile, const C* planes, const T* bias, T* y) const {
        constexpr int64_t kColumns = deep500::kTileColumns<C>;
        alignas(64) C sums[deep500::kTileRows * kColumns];
        const int64_t begin = tile % places_tiles() * kColumns, end = std::min(begin + kColumns, planes_.places());
        const Band band = bands_[tile / places_tiles() % bands_.count()];
        const int64_t group = tile / places_tiles() / bands_.count();
        const C* from = planes + group * shapes_.channels * planes_.channel_size() + begin;
        const int64_t* offsets = offsets_.data();
        deep500::multiply_tile(
            band.rows, panel(group, band), from, depth(), [offsets](int64_t r) { return offsets[r]; }, sums, kColumns);
        for (int64_t k = 0; k < band.used; ++k) {
            const int64_t map = group * shapes_.maps + band.first + k;
            const C added = bias != nullptr ? static_cast<C>(bias[map]) : C(0);
            T* to = y + map * shapes_.output_size();
            const C* source = sums + k * kColumns - begin;
            planes_.each_output_run(begin, end, [=](int64_t place, int64_t index, int64_t length) {
#pragma omp simd
                for (int64_t i = 0; i < length; ++i) to[index + i] = T(source[place + i] + added);
            });
        }
    }

  private:
    int64_t depth() const { return shapes_.channels * shapes_.kernel_size(); }
    int64_t places_tiles() const { return (planes_.places() - 1) / deep500::kTileColumns<C> + 1; }
    C* panel(int64_t group, const Band& band) const {
        return panels_.data() + (group * bands_.padded() + band.first) * depth();
    }
    void pack(const T* weight, const Band& band, C* to) const {
        for (int64_t r = 0; r < depth(); ++r) {
            for (int64_t k = 0; k < band.rows; ++k) {
                to[r * band.rows + k] = k < band.used ? static_cast<C>(weight[(band.first + k) * depth() + r]) : C(0);
            }
        }
    }

    const ConvShapes& shapes_;
    const Planes& planes_;
    Bands bands_;
    deep500::Buffer<C> panels_;
    std::vector<int64_t> offsets_;  // of the elements that a map's weights multiply, from the place of the output
};

struct Conv2d {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes =
        deep500::attributes(deep500::integers("strides"), deep500::integers("pads"), deep500::integers("dilations"),
                            deep500::integer("groups", 1));
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<const T> weight, deep500::Optional<const T> bias,
                        deep500::View<T> y, deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        const ConvShapes shapes(x, weight, bias, y, attributes);
        if (y.size() == 0) return;
        const Planes planes(shapes.rows, shapes.columns, shapes.channels * shapes.groups);
        const ConvForward<T> convolution(shapes, planes, weight);
        const int64_t image_size = planes.channel_size() * shapes.channels * shapes.groups;
        const int64_t chunk = images_at_a_time(image_size * static_cast<int64_t>(sizeof(C)), shapes.images);
        const deep500::Buffer<C> spread(chunk * image_size + deep500::kTileColumns<C>);
        std::fill_n(spread.data() + chunk * image_size, deep500::kTileColumns<C>, C(0));
        for (int64_t first = 0; first < shapes.images; first += chunk) {
            const int64_t images = std::min(chunk, shapes.images - first), tiles = convolution.tiles();
            spread_images(shapes, planes, x.data(), first, images, spread.data());
            deep500::parallel_for(images * tiles, convolution.steps(), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    T* to = y.data() + (first + i / tiles) * shapes.maps * shapes.groups * shapes.output_size();
                    convolution.run(i % tiles, spread.data() + i / tiles * image_size, bias ? bias.data() : nullptr,
                                    to);
                }
            });
        }
    }

    template <typename T>
    static void backward(deep500::View<const T> y_gradient, deep500::View<const T> x, deep500::View<const T> weight,
                         deep500::Optional<const T> bias, deep500::Optional<T> x_gradient,
                         deep500::Optional<T> weight_gradient, deep500::Optional<T> bias_gradient,
                         deep500::Attributes attributes) {
        const ConvShapes shapes(x, weight, bias, y_gradient, attributes);
        if (x_gradient) std::fill_n(x_gradient.data(), x_gradient.size(), T(0));
        if (weight_gradient) std::fill_n(weight_gradient.data(), weight_gradient.size(), T(0));
        if (bias_gradient) sum_maps(shapes, y_gradient.data(), bias_gradient.data());
        if (y_gradient.size() == 0 || (!x_gradient && !weight_gradient)) return;
        const Planes planes(shapes.rows, shapes.columns, shapes.channels * shapes.groups);
        differentiate(shapes, planes, y_gradient, x, weight, x_gradient, weight_gradient);
    }
};

}  // namespace native_ops

#endif
