// The product of two matrices, in blocks that stay in the caches.
//
// As in K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008: blocks of
// both matrices are copied into the order in which a tile of the product reads them, so that strides and 16-bit
// elements cost nothing there.
#ifndef NATIVE_OPS_GEMM_PRODUCT_H
#define NATIVE_OPS_GEMM_PRODUCT_H

#include <deep500/parallel.h>
#include <deep500/tile.h>

namespace native_ops {

// A matrix in any order.
template <typename T>
struct Matrix {
    const T* data;
    int64_t rows, columns;
    int64_t row_stride, column_stride;

    D500_HOST_DEVICE Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

namespace detail {

using deep500::kTileColumns;
using deep500::kTileRows;

// Sizes of the blocks: a panel of the right matrix stays in the first cache, a block of the left one in the second.
constexpr int64_t kDepth = 256, kHeight = 128, kWidth = 1024;

// Copies rows [i0, i1) and columns [p0, p1) of the left matrix: a panel of up to 8 rows after the other, in each column
// after column. Rows that are missing in a panel are zeros.
template <typename T, typename C>
void pack_left(const Matrix<T>& a, int64_t i0, int64_t i1, int64_t p0, int64_t p1, C* to) {
    for (int64_t i = i0; i < i1; i += kTileRows) {
        const int64_t left = std::min<int64_t>(kTileRows, i1 - i), rows = deep500::tile_rows(left);
        for (int64_t k = 0; k < rows; ++k) {
            if (k >= left) {
                for (int64_t p = p0; p < p1; ++p) to[(p - p0) * rows + k] = C(0);
                continue;
            }
            const T* from = a.data + (i + k) * a.row_stride;
            for (int64_t p = p0; p < p1; ++p) to[(p - p0) * rows + k] = static_cast<C>(from[p * a.column_stride]);
        }
        to += rows * (p1 - p0);
    }
}

// Copies rows [p0, p1) and columns [j0, j1) of the right matrix: a panel of kTileColumns columns after the other, in
// each row after row, with zeros for columns that are missing.
template <typename T, typename C>
void pack_right(const Matrix<T>& b, int64_t p0, int64_t p1, int64_t j0, int64_t j1, C* to) {
    constexpr int64_t kColumns = kTileColumns<C>;
    for (int64_t j = j0; j < j1; j += kColumns) {
        const int64_t columns = std::min(kColumns, j1 - j);
        for (int64_t p = p0; p < p1; ++p, to += kColumns) {
            const T* from = b.data + p * b.row_stride + j * b.column_stride;
            if (b.column_stride == 1) {
#pragma omp simd
                for (int64_t k = 0; k < columns; ++k) to[k] = static_cast<C>(from[k]);
            } else {
                for (int64_t k = 0; k < columns; ++k) to[k] = static_cast<C>(from[k * b.column_stride]);
            }
            for (int64_t k = columns; k < kColumns; ++k) to[k] = C(0);
        }
    }
}

// One rectangle of the product: rows [i0, i1), columns [j0, j1).
struct Part {
    int64_t i0, i1, j0, j1;
};

// Adds (or, the first time, writes) the product of a block of either matrix to a rectangle of the result.
template <typename C>
void multiply_blocks(const C* left, const C* right, int64_t depth, const Part& part, bool is_first, C* out,
                     int64_t out_stride) {
    constexpr int64_t kColumns = kTileColumns<C>;
    alignas(64) C tile[kTileRows * kColumns];
    for (int64_t j = part.j0; j < part.j1; j += kColumns, right += depth * kColumns) {
        const int64_t columns = std::min(kColumns, part.j1 - j);
        const C* panel = left;
        for (int64_t i = part.i0; i < part.i1; i += kTileRows) {
            const int64_t height = std::min<int64_t>(kTileRows, part.i1 - i);
            const int rows = deep500::tile_rows(height);
            deep500::multiply_tile(rows, panel, right, depth, [](int64_t r) { return r * kColumns; }, tile, kColumns);
            panel += rows * depth;
            for (int64_t k = 0; k < height; ++k) {
                C* to = out + (i + k) * out_stride + j;
                const C* from = tile + k * kColumns;
                if (is_first) {
                    std::copy_n(from, columns, to);
                } else {
#pragma omp simd
                    for (int64_t l = 0; l < columns; ++l) to[l] += from[l];
                }
            }
        }
    }
}

// Computes a rectangle of the product in this thread.
template <typename T, typename C>
void multiply_part(const Matrix<T>& a, const Matrix<T>& b, const Part& part, C* out) {
    constexpr int64_t kColumns = kTileColumns<C>;
    const int64_t height = std::min(kHeight, part.i1 - part.i0), width = std::min(kWidth, part.j1 - part.j0);
    const int64_t depth = std::min(kDepth, a.columns);
    const deep500::Buffer<C> left((height + kTileRows) * depth), right((width + kColumns) * depth);
    for (int64_t j = part.j0; j < part.j1; j += kWidth) {
        const int64_t j1 = std::min(j + kWidth, part.j1);
        for (int64_t p = 0; p < a.columns; p += kDepth) {
            const int64_t p1 = std::min(p + kDepth, a.columns);
            pack_right(b, p, p1, j, j1, right.data());
            for (int64_t i = part.i0; i < part.i1; i += kHeight) {
                const int64_t i1 = std::min(i + kHeight, part.i1);
                pack_left(a, i, i1, p, p1, left.data());
                multiply_blocks(left.data(), right.data(), p1 - p, {i, i1, j, j1}, p == 0, out, b.columns);
            }
        }
    }
}

}  // namespace detail

// out = a b, row-major. It must not overlap a or b.
template <typename T, typename C>
void multiply(const Matrix<T>& a, const Matrix<T>& b, C* out) {
    const int64_t m = a.rows, n = b.columns, k = a.columns;
    if (k == 0) {
        std::fill_n(out, m * n, C(0));
        return;
    }
    constexpr int64_t kRows = deep500::kTileRows, kColumns = deep500::kTileColumns<C>;
    const int64_t bands = (m + kRows - 1) / kRows, panels = (n + kColumns - 1) / kColumns;
    const double steps = static_cast<double>(k) * deep500::kTileVectors * kRows / 2;  // of a tile
    if (bands >= panels) {
        deep500::parallel_for(bands, steps * static_cast<double>(panels), [&](int64_t begin, int64_t end) {
            detail::multiply_part(a, b, {begin * kRows, std::min(end * kRows, m), 0, n}, out);
        });
    } else {
        deep500::parallel_for(panels, steps * static_cast<double>(bands), [&](int64_t begin, int64_t end) {
            detail::multiply_part(a, b, {0, m, begin * kColumns, std::min(end * kColumns, n)}, out);
        });
    }
}

}  // namespace native_ops

#endif
