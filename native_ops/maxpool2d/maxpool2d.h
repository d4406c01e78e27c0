// The largest element of every window, ONNX's MaxPool with two spatial axes; see MaxPool2d in __init__.py.
#ifndef NATIVE_OPS_MAXPOOL2D_MAXPOOL2D_H
#define NATIVE_OPS_MAXPOOL2D_MAXPOOL2D_H

#include <deep500/operator.h>
#include <deep500/parallel.h>
#include <deep500/window.h>

#include <vector>

namespace native_ops {

// The sizes of a call's tensors, checked. `x` is the input or the gradient by it, `y` the output or that by it.
struct PoolShapes {
    int64_t images;  // channels counted
    deep500::WindowAxis rows, columns;

    template <typename X, typename Y, typename I>
    PoolShapes(const deep500::View<X>& x, const deep500::View<Y>& y, const deep500::View<I>& indices,
               const deep500::Attributes& attributes) {
        deep500::require_same_shape(y, indices, "y", "indices");
        deep500::require(x.rank() == 4 && y.rank() == 4, "x has the rank ", x.rank(), " and y ", y.rank(),
                         ", accepted are 4");
        deep500::require(x.shape(0) == y.shape(0) && x.shape(1) == y.shape(1), "x and y differ in images or channels");
        images = x.shape(0) * x.shape(1);
        const auto kernel = attributes.integers("kernel_shape");
        deep500::require(kernel.size() == 2, "kernel_shape has ", kernel.size(), " entries, accepted are 2");
        rows = deep500::window_axis(attributes, 0, x.shape(2), kernel[0], y.shape(2));
        columns = deep500::window_axis(attributes, 1, x.shape(3), kernel[1], y.shape(3));
    }
    D500_HOST_DEVICE int64_t image_size() const { return rows.size * columns.size; }
    D500_HOST_DEVICE int64_t output_size() const { return rows.output * columns.output; }
};

// Whether a number takes the place of the largest so far: NaN is larger than all others, the first of equals stays.
template <typename C>
D500_HOST_DEVICE inline bool is_larger(C value, C largest) {
    return (value > largest) | ((value != value) & (largest == largest));
}

struct MaxPool2d {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes =
        deep500::attributes(deep500::integers("kernel_shape"), deep500::integers("strides"), deep500::integers("pads"),
                            deep500::integers("dilations"), deep500::integer("ceil_mode", 0));
    static constexpr bool backward_reads_inputs = false;

    template <typename T>
    static void forward(deep500::View<const T> x, deep500::View<T> y, deep500::View<int64_t> indices,
                        deep500::Attributes attributes) {
        const PoolShapes shapes(x, y, indices, attributes);
        const double steps = static_cast<double>(shapes.output_size() * shapes.rows.kernel * shapes.columns.kernel) / 8;
        deep500::parallel_for(shapes.images, steps, [&](int64_t begin, int64_t end) {
            Row<T> row(shapes.columns.output);
            for (int64_t image = begin; image < end; ++image) {
                for (int64_t i = 0; i < shapes.rows.output; ++i) {
                    const int64_t to = image * shapes.output_size() + i * shapes.columns.output;
                    row.find(shapes, x.data() + image * shapes.image_size(), i);
                    row.write(image * shapes.image_size(), y.data() + to, indices.data() + to);
                }
            }
        });
    }

    // Hands the gradient of every y to the element that is the maximum.
    template <typename T>
    static void backward(deep500::View<const T> y_gradient, deep500::View<const T>,
                         deep500::View<const int64_t> indices, deep500::View<T> x_gradient,
                         deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        const PoolShapes shapes(x_gradient, y_gradient, indices, attributes);
        const int64_t size = shapes.image_size(), outputs = shapes.output_size();
        const double steps = static_cast<double>(size + outputs * 4) / 4;
        deep500::parallel_for(shapes.images, steps, [=](int64_t begin, int64_t end) {
            std::vector<C> sums(static_cast<size_t>(size));
            for (int64_t image = begin; image < end; ++image) {
                std::fill(sums.begin(), sums.end(), C(0));
                for (int64_t i = image * outputs; i < (image + 1) * outputs; ++i) {
                    if (indices[i] == -1) continue;
                    const int64_t place = indices[i] - image * size;
                    deep500::require(0 <= place && place < size, "indices has the entry ", indices[i],
                                     ", which lies outside of its image");
                    sums[static_cast<size_t>(place)] += static_cast<C>(y_gradient[i]);
                }
                std::copy(sums.begin(), sums.end(), x_gradient.data() + image * size);
            }
        });
    }

  private:
    // The maxima of a row of windows.
    template <typename T>
    class Row {
        using C = deep500::compute_type<T>;

      public:
        explicit Row(int64_t size) : largest_(static_cast<size_t>(size)), place_(static_cast<size_t>(size)) {}

        // An element of all windows after the other, so that neighbouring windows are compared together.
        void find(const PoolShapes& shapes, const T* image, int64_t row) {
            std::fill(largest_.begin(), largest_.end(), -std::numeric_limits<C>::infinity());
            std::fill(place_.begin(), place_.end(), -1);
            for (int64_t k = 0; k < shapes.rows.kernel; ++k) {
                const int64_t at = shapes.rows.place(row, k);
                if (at < 0 || at >= shapes.rows.size) continue;
                for (int64_t l = 0; l < shapes.columns.kernel; ++l) {
                    const int64_t first = shapes.columns.first(l), last = shapes.columns.last(l);
                    if (first >= last) continue;
                    const int64_t place = at * shapes.columns.size + shapes.columns.place(first, l);
                    compare(image, place, shapes.columns.stride, first, last);
                }
            }
        }
        void write(int64_t image, T* y, int64_t* indices) const {
            const int64_t size = static_cast<int64_t>(place_.size());
#pragma omp simd
            for (int64_t i = 0; i < size; ++i) {
                y[i] = T(largest_.data()[i]);
                indices[i] = place_.data()[i] < 0 ? -1 : image + place_.data()[i];
            }
        }

      private:
        void compare(const T* image, int64_t place, int64_t stride, int64_t first, int64_t last) {
            C* largest = largest_.data() + first;
            int64_t* places = place_.data() + first;
            const int64_t count = last - first;
#pragma omp simd
            for (int64_t i = 0; i < count; ++i) {
                const C value = static_cast<C>(image[place + i * stride]);
                const bool takes = is_larger(value, largest[i]) | (places[i] < 0);
                largest[i] = takes ? value : largest[i];
                places[i] = takes ? place + i * stride : places[i];
            }
        }

        std::vector<C> largest_;
        std::vector<int64_t> place_;  // in the image
    };
};

}  // namespace native_ops

#endif
