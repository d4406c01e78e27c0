// y = alpha A' B' + beta C, ONNX's Gemm; see Gemm in __init__.py.
#ifndef NATIVE_OPS_GEMM_GEMM_H
#define NATIVE_OPS_GEMM_GEMM_H

#include <deep500/operator.h>

#include <vector>

#include "product.h"

namespace native_ops {

// The matrices of a call, checked, and how C is spread over the result.
template <typename T>
struct GemmOperands {
    Matrix<T> a, b;  // A' and B'
    int64_t c_rows = 1, c_columns = 1;
    double alpha, beta;
    bool is_a_transposed, is_b_transposed;

    GemmOperands(deep500::View<const T> a_view, deep500::View<const T> b_view, const deep500::Optional<const T>& c,
                 const deep500::Attributes& attributes)
        : alpha(attributes.real("alpha")),
          beta(attributes.real("beta")),
          is_a_transposed(attributes.integer("trans_a") != 0),
          is_b_transposed(attributes.integer("trans_b") != 0) {
        deep500::require(a_view.rank() == 2 && b_view.rank() == 2, "A has the rank ", a_view.rank(), " and B ",
                         b_view.rank(), ", accepted are two matrices");
        a = stored(a_view, is_a_transposed);
        b = stored(b_view, is_b_transposed);
        deep500::require(a.columns == b.rows, "A has ", a.columns, " columns and B ", b.rows,
                         " rows (both as they are multiplied), accepted are equal numbers");
        if (!c) return;
        deep500::require(c.rank() <= 2, "C has the rank ", c.rank(), ", accepted are up to 2");
        if (c.rank() > 0) c_columns = c.shape(-1);
        if (c.rank() > 1) c_rows = c.shape(0);
        deep500::require((c_rows == 1 || c_rows == rows()) && (c_columns == 1 || c_columns == columns()),
                         "C has the shape ", c_rows, " x ", c_columns, ", which does not broadcast to ", rows(), " x ",
                         columns());
    }
    int64_t rows() const { return a.rows; }
    int64_t columns() const { return b.columns; }
    int64_t c_row_stride() const { return c_rows == 1 ? 0 : c_columns; }
    int64_t c_column_stride() const { return c_columns == 1 ? 0 : 1; }

    template <typename U>
    void check_result(const deep500::View<U>& y, const char* name) const {
        deep500::require(y.rank() == 2 && y.shape(0) == rows() && y.shape(1) == columns(), name,
                         " has another shape than ", rows(), " x ", columns());
    }
    Matrix<T> gradient(const deep500::View<const T>& y_gradient) const {
        return {y_gradient.data(), rows(), columns(), columns(), 1};
    }

  private:
    static Matrix<T> stored(const deep500::View<const T>& view, bool is_transposed) {
        const Matrix<T> matrix = {view.data(), view.shape(0), view.shape(1), view.shape(1), 1};
        return is_transposed ? matrix.transposed() : matrix;
    }
};

struct Gemm {
    static constexpr auto dtypes = deep500::dtypes<float, double, deep500::bfloat16, deep500::float16>();
    static constexpr auto attributes =
        deep500::attributes(deep500::real("alpha", 1.0), deep500::real("beta", 1.0), deep500::integer("trans_a", 0),
                            deep500::integer("trans_b", 0));
    static constexpr bool backward_reads_outputs = false;

    template <typename T>
    static void forward(deep500::View<const T> a, deep500::View<const T> b, deep500::Optional<const T> c,
                        deep500::View<T> y, deep500::Attributes attributes) {
        using C = deep500::compute_type<T>;
        const GemmOperands<T> operands(a, b, c, attributes);
        operands.check_result(y, "y");
        const bool adds = c && operands.beta != 0;
        if constexpr (std::is_same<T, C>::value) {
            multiply(operands.a, operands.b, y.data());
            if (operands.alpha != 1 || adds) finish(operands, c, adds, y.data(), y.data());
        } else {
            const deep500::Buffer<C> product(y.size());
            multiply(operands.a, operands.b, product.data());
            finish(operands, c, adds, product.data(), y.data());
        }
    }

    template <typename T>
    static void backward(deep500::View<const T> y_gradient, deep500::View<const T> a, deep500::View<const T> b,
                         deep500::Optional<const T> c, deep500::Optional<T> a_gradient, deep500::Optional<T> b_gradient,
                         deep500::Optional<T> c_gradient, deep500::Attributes attributes) {
        const GemmOperands<T> operands(a, b, c, attributes);
        operands.check_result(y_gradient, "the gradient by y");
        const Matrix<T> g = operands.gradient(y_gradient);
        if (a_gradient) {  // that by A' is g B'^T; row-major in the order of A
            if (operands.is_a_transposed) {
                scaled_product(operands.b, g.transposed(), operands.alpha, a_gradient.data());
            } else {
                scaled_product(g, operands.b.transposed(), operands.alpha, a_gradient.data());
            }
        }
        if (b_gradient) {
            if (operands.is_b_transposed) {
                scaled_product(g.transposed(), operands.a, operands.alpha, b_gradient.data());
            } else {
                scaled_product(operands.a.transposed(), g, operands.alpha, b_gradient.data());
            }
        }
        if (c_gradient) reduce(operands, y_gradient, c_gradient);
    }

  private:
    // y = alpha product + beta c.
    template <typename T, typename C>
    static void finish(const GemmOperands<T>& operands, const deep500::View<const T>& c, bool adds, const C* product,
                       T* y) {
        const int64_t n = operands.columns(), row_stride = operands.c_row_stride();
        const C alpha = static_cast<C>(operands.alpha), beta = static_cast<C>(operands.beta);
        deep500::parallel_for(operands.rows(), static_cast<double>(n) / 8, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const C* from = product + i * n;
                T* to = y + i * n;
                if (!adds) {
#pragma omp simd
                    for (int64_t j = 0; j < n; ++j) to[j] = T(alpha * from[j]);
                } else if (operands.c_column_stride() == 0) {
                    const C added = beta * static_cast<C>(c[i * row_stride]);
#pragma omp simd
                    for (int64_t j = 0; j < n; ++j) to[j] = T(alpha * from[j] + added);
                } else {
                    const T* row = c.data() + i * row_stride;
#pragma omp simd
                    for (int64_t j = 0; j < n; ++j) to[j] = T(alpha * from[j] + beta * static_cast<C>(row[j]));
                }
            }
        });
    }

    template <typename T>
    static void scaled_product(const Matrix<T>& a, const Matrix<T>& b, double alpha, T* out) {
        using C = deep500::compute_type<T>;
        const int64_t size = a.rows * b.columns;
        const C factor = static_cast<C>(alpha);
        const auto scale = [=](const C* product) {
            deep500::parallel_for(size, 1.0 / 8, [=](int64_t begin, int64_t end) {
#pragma omp simd
                for (int64_t i = begin; i < end; ++i) out[i] = T(factor * product[i]);
            });
        };
        if constexpr (std::is_same<T, C>::value) {
            multiply(a, b, out);
            if (factor != 1) scale(out);
        } else {
            const deep500::Buffer<C> product(size);
            multiply(a, b, product.data());
            scale(product.data());
        }
    }

    // The gradient by C: beta times the sum of y_gradient over what C is repeated for, summed in double.
    template <typename T>
    static void reduce(const GemmOperands<T>& operands, const deep500::View<const T>& y_gradient,
                       const deep500::View<T>& c_gradient) {
        const int64_t m = operands.rows(), n = operands.columns();
        if (operands.beta == 0) return std::fill_n(c_gradient.data(), c_gradient.size(), T(0)), void();
        std::vector<double> sums(static_cast<size_t>(c_gradient.size()), 0.0);
        for (int64_t i = 0; i < m; ++i) {
            const T* row = y_gradient.data() + i * n;
            double* to = sums.data() + i * operands.c_row_stride();
            if (operands.c_column_stride() == 1) {
#pragma omp simd
                for (int64_t j = 0; j < n; ++j)
                    to[j] += static_cast<double>(static_cast<deep500::compute_type<T>>(row[j]));
            } else {
                double sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t j = 0; j < n; ++j)
                    sum += static_cast<double>(static_cast<deep500::compute_type<T>>(row[j]));
                *to += sum;
            }
        }
        for (size_t i = 0; i < sums.size(); ++i) c_gradient[static_cast<int64_t>(i)] = T(operands.beta * sums[i]);
    }
};

}  // namespace native_ops

#endif
