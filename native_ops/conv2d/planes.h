// Images laid out so that a convolution reads neighbours only, whatever its strides, dilations and pads.
//
// With strides, a tap of the kernel sees every stride-th row and column. So the rows and columns of the padded image
// are sorted by their remainder: each pair of remainders that some tap has is a plane of its own. In it, the elements
// that a tap multiplies for the outputs (o, p), p the fastest, lie one after another from the tap's shift on: place
// o * width + p + shift. Places with p beyond the output's last column are computed as well, and left out.
#ifndef NATIVE_OPS_CONV2D_PLANES_H
#define NATIVE_OPS_CONV2D_PLANES_H

#include <deep500/window.h>

#include <algorithm>
#include <vector>

namespace native_ops {

class Planes {
  public:
    // The remainders of a plane.
    struct Phase {
        int64_t row, column;
    };
    // Where an element of the kernel finds what it multiplies.
    struct Tap {
        int64_t phase;
        int64_t shift;
    };

    // `channels` are all those of an image.
    Planes(const deep500::WindowAxis& rows, const deep500::WindowAxis& columns, int64_t channels)
        : rows_(rows), columns_(columns) {
        const double elements = static_cast<double>(extent(rows)) * static_cast<double>(extent(columns)) *
                                static_cast<double>(rows.kernel) * static_cast<double>(columns.kernel) *
                                static_cast<double>(channels + 1);
        deep500::require(elements < 1e15, "windows of ", rows.kernel, " x ", columns.kernel, " over ", extent(rows),
                         " x ", extent(columns), " elements and ", channels, " channels are too many for memory");
        width_ = extent(columns);
        plane_ = extent(rows) * width_;
        const std::vector<int64_t> row_remainders = remainders(rows), column_remainders = remainders(columns);
        for (const int64_t row : row_remainders) {
            for (const int64_t column : column_remainders) phases_.push_back({row, column});
        }
        for (int64_t i = 0; i < rows.kernel; ++i) {
            for (int64_t j = 0; j < columns.kernel; ++j) {
                const int64_t y = i * rows.dilation, x = j * columns.dilation;
                const int64_t phase =
                    place_of(row_remainders, y % rows.stride) * static_cast<int64_t>(column_remainders.size()) +
                    place_of(column_remainders, x % columns.stride);
                taps_.push_back({phase, y / rows.stride * width_ + x / columns.stride});
            }
        }
    }

    const deep500::WindowAxis& rows() const { return rows_; }
    const deep500::WindowAxis& columns() const { return columns_; }
    int64_t width() const { return width_; }
    // Elements of a plane.
    int64_t plane() const { return plane_; }
    // Places from the first output to the last.
    int64_t places() const { return (rows_.output - 1) * width_ + columns_.output; }
    int64_t largest_shift() const { return taps_.back().shift; }
    const std::vector<Phase>& phases() const { return phases_; }
    const std::vector<Tap>& taps() const { return taps_; }
    int64_t channel_size() const { return static_cast<int64_t>(phases_.size()) * plane_; }

    // Calls use(place, row * row_size + column, length, step) for the runs of a plane that lie in the image: `length`
    // elements, neighbours in the plane and `step` apart in the image. Only places in [begin, end) count.
    template <typename Use>
    void each_run(const Phase& phase, int64_t begin, int64_t end, Use&& use) const {
        // Columns of the plane whose elements are columns of the image.
        const int64_t first = deep500::ceil_quotient(columns_.begin - phase.column, columns_.stride);
        const int64_t last =
            deep500::floor_quotient(columns_.size - 1 + columns_.begin - phase.column, columns_.stride) + 1;
        const int64_t low = std::max<int64_t>(first, 0), high = std::min(last, width_);
        for (int64_t line = begin / width_; line * width_ < end; ++line) {
            const int64_t row = line * rows_.stride + phase.row - rows_.begin;
            if (row < 0 || row >= rows_.size) continue;
            const int64_t from = std::max(line * width_ + low, begin), to = std::min(line * width_ + high, end);
            if (from >= to) continue;
            const int64_t column = (from - line * width_) * columns_.stride + phase.column - columns_.begin;
            use(from, row * columns_.size + column, to - from, columns_.stride);
        }
    }

    // Lays a channel of an image out into its planes.
    template <typename T, typename C>
    void spread(const T* image, C* to) const {
        std::fill_n(to, channel_size(), C(0));
        for (const Phase& phase : phases_) {
            each_run(phase, 0, plane_, [=](int64_t place, int64_t from, int64_t length, int64_t step) {
                C* target = to + place;
                const T* source = image + from;
                if (step == 1) {
#pragma omp simd
                    for (int64_t i = 0; i < length; ++i) target[i] = static_cast<C>(source[i]);
                } else {
                    for (int64_t i = 0; i < length; ++i) target[i] = static_cast<C>(source[i * step]);
                }
            });
            to += plane_;
        }
    }

    // Lays a channel of the gradient by the output out at the places of the outputs; `to` is place 0. The places
    // between are zeros already.
    template <typename T, typename C>
    void spread_gradient(const T* gradient, C* to) const {
        const int64_t columns = columns_.output;
        for (int64_t row = 0; row < rows_.output; ++row) {
            const T* source = gradient + row * columns;
            C* target = to + row * width_;
#pragma omp simd
            for (int64_t i = 0; i < columns; ++i) target[i] = static_cast<C>(source[i]);
        }
    }

    // Calls use(place, index, length) for runs of outputs among the places [begin, end).
    template <typename Use>
    void each_output_run(int64_t begin, int64_t end, Use&& use) const {
        for (int64_t row = begin / width_; row < rows_.output && row * width_ < end; ++row) {
            const int64_t from = std::max(row * width_, begin), to = std::min(row * width_ + columns_.output, end);
            if (from < to) use(from, row * columns_.output + from - row * width_, to - from);
        }
    }

  private:
    // Elements of a plane along an axis: those of one remainder up to the last one that a window has.
    static int64_t extent(const deep500::WindowAxis& axis) {
        return axis.output + (axis.kernel - 1) * axis.dilation / axis.stride;
    }
    static std::vector<int64_t> remainders(const deep500::WindowAxis& axis) {
        std::vector<int64_t> found;
        for (int64_t k = 0; k < axis.kernel; ++k) found.push_back(k * axis.dilation % axis.stride);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }
    static int64_t place_of(const std::vector<int64_t>& sorted, int64_t value) {
        return std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
    }

    deep500::WindowAxis rows_, columns_;
    int64_t width_ = 0, plane_ = 0;
    std::vector<Phase> phases_;
    std::vector<Tap> taps_;
};

}  // namespace native_ops

#endif
