// The gradients of a direct convolution by its input, its weight and its bias.
#ifndef NATIVE_OPS_CONV2D_GRADIENTS_H
#define NATIVE_OPS_CONV2D_GRADIENTS_H

#include <deep500/parallel.h>
#include <deep500/tile.h>

#include "planes.h"
#include "shapes.h"

namespace native_ops {

// A few neighbouring channels that one tile computes: `used` of them, in a tile of `rows`.
struct Band {
    int64_t first, used;
    int rows;
};

// All bands of a number of channels.
class Bands {
  public:
    explicit Bands(int64_t channels) : channels_(channels) {}
    int64_t count() const { return (channels_ + deep500::kTileRows - 1) / deep500::kTileRows; }
    // Channels and those that only fill tiles.
    int64_t padded() const { return count() * deep500::kTileRows; }
    Band operator[](int64_t index) const {
        const int64_t first = index * deep500::kTileRows;
        const int64_t used = std::min<int64_t>(deep500::kTileRows, channels_ - first);
        return {first, used, deep500::tile_rows(used)};
    }

  private:
    int64_t channels_;
};

// How many images are laid out at a time: enough for all threads, few enough for the caches.
inline int64_t images_at_a_time(int64_t image_bytes, int64_t images) {
    constexpr int64_t kChunkBytes = 8 << 20;
    return std::max<int64_t>(1, std::min(images, kChunkBytes / std::max<int64_t>(image_bytes, 1)));
}

// Lays some images out into their planes.
template <typename T, typename C>
void spread_images(const ConvShapes& shapes, const Planes& planes, const T* x, int64_t first, int64_t images, C* to) {
    const int64_t channels = shapes.channels * shapes.groups;
    deep500::parallel_for(
        images * channels, static_cast<double>(planes.channel_size()) / 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                planes.spread(x + (first * channels + i) * shapes.image_size(), to + i * planes.channel_size());
            }
        });
}

// The gradient by the bias: sums over images and places, in double.
template <typename T>
void sum_maps(const ConvShapes& shapes, const T* y_gradient, T* bias_gradient) {
    using C = deep500::compute_type<T>;
    const int64_t maps = shapes.maps * shapes.groups, size = shapes.output_size();
    deep500::parallel_for(maps, static_cast<double>(shapes.images * size) / 4, [=](int64_t begin, int64_t end) {
        for (int64_t map = begin; map < end; ++map) {
            double sum = 0;
            for (int64_t image = 0; image < shapes.images; ++image) {
                const T* from = y_gradient + (image * maps + map) * size;
#pragma omp simd reduction(+ : sum)
                for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(static_cast<C>(from[i]));
            }
            bias_gradient[map] = T(sum);
        }
    });
}

// The gradients by y of some images, each map at its places, with zeros around it: a tap reads them `shift` before.
template <typename C>
class SpreadGradient {
  public:
    SpreadGradient(const ConvShapes& shapes, const Planes& planes, int64_t images)
        : planes_(planes),
          maps_(shapes.maps * shapes.groups),
          map_size_(planes.largest_shift() + planes.plane() + deep500::kTileColumns<C>),
          data_(images * maps_ * map_size_) {}

    template <typename T>
    void fill(const ConvShapes& shapes, const T* y_gradient, int64_t first, int64_t images) {
        deep500::parallel_for(images * maps_, static_cast<double>(map_size_) / 4, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                std::fill_n(data_.data() + i * map_size_, map_size_, C(0));
                planes_.spread_gradient(y_gradient + (first * maps_ + i) * shapes.output_size(), place(i));
            }
        });
    }
    // Place 0 of a map, counted over all images.
    C* place(int64_t map) const { return data_.data() + map * map_size_ + planes_.largest_shift(); }
    int64_t map_size() const { return map_size_; }

  private:
    const Planes& planes_;
    int64_t maps_, map_size_;
    deep500::Buffer<C> data_;
};

// The gradient by x: what each of its elements adds to, which is a convolution of the gradient by y. Computed plane by
// plane of x, for there all elements have the same taps.
template <typename T>
class ConvByInput {
  public:
    using C = deep500::compute_type<T>;

    ConvByInput(const ConvShapes& shapes, const Planes& planes, const SpreadGradient<C>& gradient,
                deep500::View<const T> weight)
        : shapes_(shapes),
          planes_(planes),
          gradient_(gradient),
          bands_(shapes.channels),
          panels_(shapes.groups * bands_.padded() * shapes.maps * shapes.kernel_size()) {
        const int64_t taps = shapes.kernel_size();
        offsets_.resize(planes.phases().size());
        sources_.resize(planes.phases().size());
        for (int64_t map = 0; map < shapes.maps; ++map) {
            for (int64_t tap = 0; tap < taps; ++tap) {
                const Planes::Tap& at = planes.taps()[static_cast<size_t>(tap)];
                offsets_[static_cast<size_t>(at.phase)].push_back(map * gradient.map_size() - at.shift);
                sources_[static_cast<size_t>(at.phase)].push_back(map * shapes.channels * taps + tap);
            }
        }
        for (int64_t group = 0; group < shapes.groups; ++group) {
            for (int64_t i = 0; i < bands_.count(); ++i) pack(weight.data(), group, bands_[i]);
        }
    }

    int64_t tiles() const { return shapes_.groups * bands_.count() * phase_tiles() * phases(); }
    double steps() const {
        const int64_t products = shapes_.maps * shapes_.kernel_size() / phases() + 1;
        return static_cast<double>(products) * deep500::kTileRows * deep500::kTileVectors / 2;
    }

    // Computes one tile of an image's channels.
    void run(int64_t tile, int64_t image, T* x_gradient) const {
        constexpr int64_t kColumns = deep500::kTileColumns<C>;
        alignas(64) C sums[deep500::kTileRows * kColumns];
        const int64_t begin = tile % phase_tiles() * kColumns, end = std::min(begin + kColumns, planes_.plane());
        const int64_t phase = tile / phase_tiles() % phases(), rest = tile / phase_tiles() / phases();
        const Band band = bands_[rest % bands_.count()];
        const int64_t group = rest / bands_.count();
        const std::vector<int64_t>& offsets = offsets_[static_cast<size_t>(phase)];
        const int64_t* at = offsets.data();
        const C* from = gradient_.place((image * shapes_.groups + group) * shapes_.maps) + begin;
        deep500::multiply_tile(
            band.rows, panel(group, band, phase), from, static_cast<int64_t>(offsets.size()),
            [at](int64_t r) { return at[r]; }, sums, kColumns);
        for (int64_t k = 0; k < band.used; ++k) {
            T* to = x_gradient + (group * shapes_.channels + band.first + k) * shapes_.image_size();
            const C* source = sums + k * kColumns - begin;
            planes_.each_run(planes_.phases()[static_cast<size_t>(phase)], begin, end,
                             [=](int64_t place, int64_t index, int64_t length, int64_t step) {
                                 for (int64_t i = 0; i < length; ++i) to[index + i * step] = T(source[place + i]);
                             });
        }
    }

  private:
    int64_t phases() const { return static_cast<int64_t>(planes_.phases().size()); }
    int64_t phase_tiles() const { return (planes_.plane() - 1) / deep500::kTileColumns<C> + 1; }
    // The weights of a band: those of the first phase, then of the others.
    C* panel(int64_t group, const Band& band, int64_t phase) const {
        C* found = panels_.data() + (group * bands_.padded() + band.first) * shapes_.maps * shapes_.kernel_size();
        for (int64_t i = 0; i < phase; ++i)
            found += static_cast<int64_t>(offsets_[static_cast<size_t>(i)].size()) * band.rows;
        return found;
    }
    void pack(const T* weight, int64_t group, const Band& band) {
        const int64_t taps = shapes_.kernel_size();
        const T* from = weight + (group * shapes_.maps * shapes_.channels + band.first) * taps;
        C* to = panel(group, band, 0);
        for (const std::vector<int64_t>& sources : sources_) {
            for (const int64_t source : sources) {
                for (int64_t k = 0; k < band.rows; ++k) {
                    *to++ = k < band.used ? static_cast<C>(from[source + k * taps]) : C(0);
                }
            }
        }
    }

    const ConvShapes& shapes_;
    const Planes& planes_;
    const SpreadGradient<C>& gradient_;
    Bands bands_;
    deep500::Buffer<C> panels_;
    // For each phase, what a tile sums over: a map and a tap. Where it is in the gradient, and in a channel's weights.
    std::vector<std::vector<int64_t>> offsets_, sources_;
};

// The gradient by the weight: for every map, channel and tap the product of the gradient by y and a plane of x, each
// image's summed in C, those of all images in double.
template <typename T>
class ConvByWeight {
  public:
    using C = deep500::compute_type<T>;

    ConvByWeight(const ConvShapes& shapes, const Planes& planes, const SpreadGradient<C>& gradient)
        : shapes_(shapes), planes_(planes), gradient_(gradient) {
        const int64_t size = shapes.groups * shapes.maps * depth();
        sums_.resize(static_cast<size_t>(size), 0.0);
        for (int64_t channel = 0; channel < shapes.channels; ++channel) {
            for (const Planes::Tap& tap : planes.taps()) {
                offsets_.push_back(channel * planes.channel_size() + tap.phase * planes.plane() + tap.shift);
            }
        }
    }

    // Number of squares of the gradient, and the steps that each takes with so many images.
    int64_t squares() const { return shapes_.groups * down() * across(); }
    double steps(int64_t images) const {
        return static_cast<double>(planes_.places() * images) / deep500::kLanes<C> * kDown * kAcross / 2;
    }

    // Adds what some images contribute to a square.
    void run(int64_t square, const C* spread, int64_t images) {
        const int64_t group = square / across() / down();
        const int64_t map = square / across() % down() * kDown, place = square % across() * kAcross;
        const int64_t maps = std::min(kDown, shapes_.maps - map), places = std::min(kAcross, depth() - place);
        const int64_t channel_size = planes_.channel_size() * shapes_.channels;
        for (int64_t image = 0; image < images; ++image) {
            const int64_t part = image * shapes_.groups + group;
            const C *left[kDown], *right[kAcross];  // what is missing is computed twice, and left out
            for (int64_t i = 0; i < kDown; ++i) {
                left[i] = gradient_.place(part * shapes_.maps + map + std::min(i, maps - 1));
            }
            for (int64_t j = 0; j < kAcross; ++j) {
                const int64_t offset = offsets_[static_cast<size_t>(place + std::min(j, places - 1))];
                right[j] = spread + part * channel_size + offset;
            }
            C products[kDown][kAcross];
            multiply(left, right, products);
            for (int64_t i = 0; i < maps; ++i) {
                double* to = sums_.data() + (group * shapes_.maps + map + i) * depth() + place;
                for (int64_t j = 0; j < places; ++j) to[j] += static_cast<double>(products[i][j]);
            }
        }
    }

    void write(T* weight_gradient) const {
        for (size_t i = 0; i < sums_.size(); ++i) weight_gradient[i] = T(sums_[i]);
    }

  private:
    static constexpr int64_t kDown = deep500::kTileVectors == 2 ? 4 : 2, kAcross = 4;

    int64_t depth() const { return shapes_.channels * shapes_.kernel_size(); }
    int64_t down() const { return (shapes_.maps + kDown - 1) / kDown; }
    int64_t across() const { return (depth() + kAcross - 1) / kAcross; }

    void multiply(const C* const* left, const C* const* right, C (*products)[kAcross]) const {
        using Vector = typename deep500::VectorOf<C>::type;
        constexpr int kLanes = deep500::kLanes<C>;
        Vector sums[kDown][kAcross] = {};
        for (int64_t p = 0; p < planes_.places(); p += kLanes) {  // beyond the last place the gradient is 0
            Vector columns[kAcross];
            D500_UNROLLED
            for (int j = 0; j < kAcross; ++j) columns[j] = deep500::load_vector(right[j] + p);
            D500_UNROLLED
            for (int i = 0; i < kDown; ++i) {
                const Vector row = deep500::load_vector(left[i] + p);
                D500_UNROLLED
                for (int j = 0; j < kAcross; ++j) sums[i][j] += row * columns[j];
            }
        }
        for (int i = 0; i < kDown; ++i) {
            for (int j = 0; j < kAcross; ++j) {
                C lanes[kLanes], sum = 0;
                deep500::store_vector(lanes, sums[i][j]);
                for (int k = 0; k < kLanes; ++k) sum += lanes[k];
                products[i][j] = sum;
            }
        }
    }

    const ConvShapes& shapes_;
    const Planes& planes_;
    const SpreadGradient<C>& gradient_;
    std::vector<double> sums_;
    std::vector<int64_t> offsets_;
};

// The gradients by x and by the weight, where they are asked for; both are zeros before.
template <typename T>
void differentiate(const ConvShapes& shapes, const Planes& planes, deep500::View<const T> y_gradient,
                   deep500::View<const T> x, deep500::View<const T> weight, deep500::Optional<T> x_gradient,
                   deep500::Optional<T> weight_gradient) {
    using C = deep500::compute_type<T>;
    const int64_t channels = shapes.channels * shapes.groups, image_size = planes.channel_size() * channels;
    const int64_t map_bytes = (planes.largest_shift() + planes.plane()) * static_cast<int64_t>(sizeof(C));
    const int64_t chunk = images_at_a_time(
        image_size * static_cast<int64_t>(sizeof(C)) + map_bytes * shapes.maps * shapes.groups, shapes.images);
    SpreadGradient<C> gradient(shapes, planes, chunk);
    const int64_t slack = deep500::kTileColumns<C>;
    const deep500::Buffer<C> spread(weight_gradient ? chunk * image_size + slack : 0);
    if (weight_gradient) std::fill_n(spread.data() + chunk * image_size, slack, C(0));
    const ConvByInput<T> by_input(shapes, planes, gradient, weight);
    ConvByWeight<T> by_weight(shapes, planes, gradient);
    for (int64_t first = 0; first < shapes.images; first += chunk) {
        const int64_t images = std::min(chunk, shapes.images - first);
        gradient.fill(shapes, y_gradient.data(), first, images);
        if (x_gradient && x_gradient.size() > 0) {
            const int64_t tiles = by_input.tiles();
            deep500::parallel_for(images * tiles, by_input.steps(), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    T* to = x_gradient.data() + (first + i / tiles) * channels * shapes.image_size();
                    by_input.run(i % tiles, i / tiles, to);
                }
            });
        }
        if (weight_gradient && weight_gradient.size() > 0) {
            spread_images(shapes, planes, x.data(), first, images, spread.data());
            deep500::parallel_for(by_weight.squares(), by_weight.steps(images), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) by_weight.run(i, spread.data(), images);
            });
        }
    }
    if (weight_gradient) by_weight.write(weight_gradient.data());
}

}  // namespace native_ops

#endif
