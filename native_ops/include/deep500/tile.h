// A small piece of a matrix product that stays in registers, and memory that suits it.
#ifndef DEEP500_TILE_H
#define DEEP500_TILE_H

#include <deep500/types.h>

#include <cstdlib>
#include <memory>
#include <new>

// What one register holds. GCC and clang make a vector of several where the processor's are smaller.
#if defined(__AVX512F__)
#define D500_VECTOR_BYTES 64
#elif defined(__AVX__)
#define D500_VECTOR_BYTES 32
#else
#define D500_VECTOR_BYTES 16
#endif

// Before a loop of a few rounds whose variables are to stay in registers.
#ifdef __CUDACC__
#define D500_UNROLLED _Pragma("unroll")
#else
#define D500_UNROLLED _Pragma("GCC unroll 8")
#endif

namespace deep500 {

template <typename C>
struct VectorOf;
template <>
struct VectorOf<float> {
    typedef float type __attribute__((vector_size(D500_VECTOR_BYTES)));
};
template <>
struct VectorOf<double> {
    typedef double type __attribute__((vector_size(D500_VECTOR_BYTES)));
};

// Elements of C in a vector.
template <typename C>
constexpr int kLanes = D500_VECTOR_BYTES / static_cast<int>(sizeof(C));

// A tile has up to 8 rows of one or two vectors: as many sums as the processor has registers for, some kept free.
constexpr int kTileRows = 8;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTileVectors = 2;
#else
constexpr int kTileVectors = 1;
#endif
template <typename C>
constexpr int kTileColumns = kTileVectors * kLanes<C>;

template <typename C>
inline typename VectorOf<C>::type load_vector(const C* from) {
    typename VectorOf<C>::type vector;
    memcpy(&vector, from, sizeof vector);  // at any address
    return vector;
}
template <typename C>
inline void store_vector(C* to, typename VectorOf<C>::type vector) {
    memcpy(to, &vector, sizeof vector);
}

// out[i * out_stride + j] = sum over r of a[r * rows + i] * b[offset(r) + j], for all i < rows and j < kTileColumns.
template <int rows, typename C, typename Offset>
inline void multiply_tile(const C* a, const C* b, int64_t count, Offset offset, C* out, int64_t out_stride) {
    using Vector = typename VectorOf<C>::type;
    Vector sums[rows][kTileVectors] = {};
    for (int64_t r = 0; r < count; ++r) {
        const C* from = b + offset(r);
        Vector right[kTileVectors];
        D500_UNROLLED
        for (int v = 0; v < kTileVectors; ++v) right[v] = load_vector(from + v * kLanes<C>);
        D500_UNROLLED
        for (int i = 0; i < rows; ++i) {
            const C left = a[r * rows + i];
            D500_UNROLLED
            for (int v = 0; v < kTileVectors; ++v) sums[i][v] += left * right[v];
        }
    }
    D500_UNROLLED
    for (int i = 0; i < rows; ++i) {
        D500_UNROLLED
        for (int v = 0; v < kTileVectors; ++v) store_vector(out + i * out_stride + v * kLanes<C>, sums[i][v]);
    }
}

// Rows of the tile that holds the next of so many rows: 1, 2, 4 or 8.
constexpr int tile_rows(int64_t left) {
    return left >= 5 ? 8 : left >= 3 ? 4 : static_cast<int>(left);
}

// The same as multiply_tile<rows>, where the number of rows is known at run time.
template <typename C, typename Offset>
void multiply_tile(int rows, const C* a, const C* b, int64_t count, Offset offset, C* out, int64_t out_stride) {
    switch (rows) {
        case 1:
            return multiply_tile<1>(a, b, count, offset, out, out_stride);
        case 2:
            return multiply_tile<2>(a, b, count, offset, out, out_stride);
        case 4:
            return multiply_tile<4>(a, b, count, offset, out, out_stride);
        default:
            return multiply_tile<8>(a, b, count, offset, out, out_stride);
    }
}

// Memory for numbers, not initialised, that begins with a cache line.
template <typename C>
class Buffer {
  public:
    explicit Buffer(int64_t size) {
        if (size <= 0) return;
        if (size > kMost) throw std::bad_alloc();
        const size_t bytes = (static_cast<size_t>(size) * sizeof(C) + kLine - 1) / kLine * kLine;
        data_.reset(static_cast<C*>(std::aligned_alloc(kLine, bytes)));
        if (data_ == nullptr) throw std::bad_alloc();
    }
    C* data() const { return data_.get(); }
    C& operator[](int64_t index) const { return data_.get()[index]; }

  private:
    static constexpr size_t kLine = 64;
    static constexpr int64_t kMost = INT64_MAX / static_cast<int64_t>(2 * sizeof(C));
    struct Free {
        void operator()(C* data) const { std::free(data); }
    };
    std::unique_ptr<C, Free> data_;
};

}  // namespace deep500

#endif
