#include <deep500/cuda.h>

#include "maxpool2d.h"

namespace native_ops {

template <typename T>
__global__ void pool_kernel(PoolShapes shapes, const T* x, T* y, int64_t* indices, int64_t size) {
    using C = deep500::compute_type<T>;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        const int64_t column = i % shapes.columns.output, row = i / shapes.columns.output % shapes.rows.output;
        const int64_t image = i / shapes.output_size() * shapes.image_size();
        C largest = -INFINITY;
        int64_t found = -1;
        for (int64_t k = 0; k < shapes.rows.kernel; ++k) {
            const int64_t at = shapes.rows.place(row, k);
            if (at < 0 || at >= shapes.rows.size) continue;
            for (int64_t l = 0; l < shapes.columns.kernel; ++l) {
                const int64_t to = shapes.columns.place(column, l);
                if (to < 0 || to >= shapes.columns.size) continue;
                const int64_t place = image + at * shapes.columns.size + to;
                const C value = static_cast<C>(x[place]);
                if (found >= 0 && !is_larger(value, largest)) continue;
                largest = value;
                found = place;
            }
        }
        y[i] = T(largest);
        indices[i] = found;
    }
}

// Each thread gathers from the windows that its elements lie in, so that nothing is added out of order.
template <typename T>
__global__ void unpool_kernel(PoolShapes shapes, const T* y_gradient, const int64_t* indices, T* x_gradient,
                              int64_t size) {
    using C = deep500::compute_type<T>;
    for (int64_t i = deep500::first_item(); i < size; i += deep500::item_step()) {
        const int64_t column = i % shapes.columns.size, row = i / shapes.columns.size % shapes.rows.size;
        const int64_t image = i / shapes.image_size() * shapes.output_size();
        C sum = 0;
        for (int64_t k = 0; k < shapes.rows.kernel; ++k) {
            const int64_t down = row + shapes.rows.begin - k * shapes.rows.dilation;
            if (down < 0 || down % shapes.rows.stride != 0 || down / shapes.rows.stride >= shapes.rows.output) continue;
            for (int64_t l = 0; l < shapes.columns.kernel; ++l) {
                const int64_t across = column + shapes.columns.begin - l * shapes.columns.dilation;
                if (across < 0 || across % shapes.columns.stride != 0) continue;
                if (across / shapes.columns.stride >= shapes.columns.output) continue;
                const int64_t place =
                    image + down / shapes.rows.stride * shapes.columns.output + across / shapes.columns.stride;
                if (indices[place] == i) sum += static_cast<C>(y_gradient[place]);
            }
        }
        x_gradient[i] = T(sum);
    }
}

struct MaxPool2dCuda : MaxPool2d {
    template <typename T>
    static void forward_cuda(deep500::View<const T> x, deep500::View<T> y, deep500::View<int64_t> indices,
                             deep500::Attributes attributes, deep500::Stream stream) {
        const PoolShapes shapes(x, y, indices, attributes);
        deep500::launch(pool_kernel<T>, y.size(), stream, shapes, x.data(), y.data(), indices.data(), y.size());
    }

    template <typename T>
    static void backward_cuda(deep500::View<const T> y_gradient, deep500::View<const T>,
                              deep500::View<const int64_t> indices, deep500::View<T> x_gradient,
                              deep500::Attributes attributes, deep500::Stream stream) {
        const PoolShapes shapes(x_gradient, y_gradient, indices, attributes);
        deep500::launch(unpool_kernel<T>, x_gradient.size(), stream, shapes, y_gradient.data(), indices.data(),
                        x_gradient.data(), x_gradient.size());
    }
};

}  // namespace native_ops

D500_OPERATOR(maxpool2d, native_ops::MaxPool2dCuda)
