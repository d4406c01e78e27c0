#include <deep500/cuda.h>

#include "gemm.h"

namespace native_ops {

// A block computes a square of the result; each of its threads a smaller one of 4 x 4.
constexpr int kSquare = 64, kStep = 16, kThreadSquare = 4;

// Copies kStep columns (from p) of kSquare rows (from i) of a matrix into shared memory, column by column, with zeros
// beyond its end.
template <typename T, typename C>
__device__ void load_square(const Matrix<T>& from, int64_t i, int64_t p, C (*to)[kSquare + 1]) {
    for (int k = static_cast<int>(threadIdx.x); k < kSquare * kStep; k += deep500::kBlockThreads) {
        // Neighbouring threads read neighbouring elements, whichever way these lie.
        const bool by_row = from.column_stride == 1;
        const int row = by_row ? k / kStep : k % kSquare, column = by_row ? k % kStep : k / kSquare;
        const bool is_inside = i + row < from.rows && p + column < from.columns;
        const int64_t place = (i + row) * from.row_stride + (p + column) * from.column_stride;
        to[column][row] = is_inside ? static_cast<C>(from.data[place]) : C(0);
    }
}

// y = alpha a b + beta c, row-major; c may be null.
template <typename T>
__global__ void product_kernel(Matrix<T> a, Matrix<T> b, const T* c, int64_t c_row_stride, int64_t c_column_stride,
                               deep500::compute_type<T> alpha, deep500::compute_type<T> beta, T* y) {
    using C = deep500::compute_type<T>;
    __shared__ C left[kStep][kSquare + 1], right[kStep][kSquare + 1];
    const int64_t across = (b.columns + kSquare - 1) / kSquare, squares = (a.rows + kSquare - 1) / kSquare * across;
    const int row = static_cast<int>(threadIdx.x) / 16, column = static_cast<int>(threadIdx.x) % 16;
    for (int64_t square = blockIdx.x; square < squares; square += gridDim.x) {
        const int64_t i0 = square / across * kSquare, j0 = square % across * kSquare;
        C sums[kThreadSquare][kThreadSquare] = {};
        for (int64_t p = 0; p < a.columns; p += kStep) {
            load_square(a, i0, p, left);
            load_square(b.transposed(), j0, p, right);
            __syncthreads();
            for (int s = 0; s < kStep; ++s) {
                for (int i = 0; i < kThreadSquare; ++i) {
                    for (int j = 0; j < kThreadSquare; ++j)
                        sums[i][j] += left[s][row + 16 * i] * right[s][column + 16 * j];
                }
            }
            __syncthreads();
        }
        for (int k = 0; k < kThreadSquare * kThreadSquare; ++k) {
            const int64_t i = i0 + row + 16 * (k / kThreadSquare), j = j0 + column + 16 * (k % kThreadSquare);
            if (i >= a.rows || j >= b.columns) continue;
            C value = alpha * sums[k / kThreadSquare][k % kThreadSquare];
            if (c != nullptr) value += beta * static_cast<C>(c[i * c_row_stride + j * c_column_stride]);
            y[i * b.columns + j] = T(value);
        }
    }
}

// The gradient by C, a block for each of its elements.
template <typename T>
__global__ void reduce_kernel(const T* y_gradient, int64_t m, int64_t n, int64_t c_rows, int64_t c_columns, double beta,
                              T* c_gradient) {
    for (int64_t place = blockIdx.x; place < c_rows * c_columns; place += gridDim.x) {
        const int64_t i0 = c_rows == 1 ? 0 : place / c_columns, rows = c_rows == 1 ? m : 1;
        const int64_t j0 = c_columns == 1 ? 0 : place % c_columns, columns = c_columns == 1 ? n : 1;
        double sum = 0;
        for (int64_t k = threadIdx.x; k < rows * columns; k += blockDim.x) {
            sum += static_cast<deep500::compute_type<T>>(y_gradient[(i0 + k / columns) * n + j0 + k % columns]);
        }
        sum = deep500::block_sum(sum);
        if (threadIdx.x == 0) c_gradient[place] = T(beta * sum);
    }
}

struct GemmCuda : Gemm {
    template <typename T>
    static void forward_cuda(deep500::View<const T> a, deep500::View<const T> b, deep500::Optional<const T> c,
                             deep500::View<T> y, deep500::Attributes attributes, deep500::Stream stream) {
        const GemmOperands<T> operands(a, b, c, attributes);
        operands.check_result(y, "y");
        const T* added = c && operands.beta != 0 ? c.data() : nullptr;
        start(operands.a, operands.b, added, operands, y.data(), stream);
    }

    template <typename T>
    static void backward_cuda(deep500::View<const T> y_gradient, deep500::View<const T> a, deep500::View<const T> b,
                              deep500::Optional<const T> c, deep500::Optional<T> a_gradient,
                              deep500::Optional<T> b_gradient, deep500::Optional<T> c_gradient,
                              deep500::Attributes attributes, deep500::Stream stream) {
        const GemmOperands<T> operands(a, b, c, attributes);
        operands.check_result(y_gradient, "the gradient by y");
        const Matrix<T> g = operands.gradient(y_gradient), left = operands.a, right = operands.b;
        const T* none = nullptr;
        if (a_gradient && operands.is_a_transposed) {
            start(right, g.transposed(), none, operands, a_gradient.data(), stream);
        } else if (a_gradient) {
            start(g, right.transposed(), none, operands, a_gradient.data(), stream);
        }
        if (b_gradient && operands.is_b_transposed) {
            start(g.transposed(), left, none, operands, b_gradient.data(), stream);
        } else if (b_gradient) {
            start(left.transposed(), g, none, operands, b_gradient.data(), stream);
        }
        if (c_gradient && operands.beta == 0) {
            deep500::fill_zeros(c_gradient, stream);
        } else if (c_gradient) {
            deep500::launch_blocks(reduce_kernel<T>, c_gradient.size(), stream, y_gradient.data(), operands.rows(),
                                   operands.columns(), operands.c_rows, operands.c_columns, operands.beta,
                                   c_gradient.data());
        }
    }

  private:
    template <typename T>
    static void start(const Matrix<T>& a, const Matrix<T>& b, const T* c, const GemmOperands<T>& operands, T* y,
                      deep500::Stream stream) {
        const int64_t squares = (a.rows + kSquare - 1) / kSquare * ((b.columns + kSquare - 1) / kSquare);
        deep500::launch_blocks(product_kernel<T>, squares, stream, a, b, c, operands.c_row_stride(),
                               operands.c_column_stride(), operands.alpha, operands.beta, y);
    }
};

}  // namespace native_ops

D500_OPERATOR(gemm, native_ops::GemmCuda)
