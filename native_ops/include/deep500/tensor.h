// What an operator works on: views of tensors, attributes, and the errors it may throw.
#ifndef DEEP500_TENSOR_H
#define DEEP500_TENSOR_H

#include <deep500/types.h>

#include <cstddef>
#include <stdexcept>
#include <string>

struct CUstream_st;

// Of functions that fail or that are called once a call: copies of them in every caller would only take time to
// compile.
#define D500_NOINLINE __attribute__((noinline))
#define D500_COLD __attribute__((noinline, cold))

namespace deep500 {

// A CUDA stream: the same type as cudaStream_t.
using Stream = CUstream_st*;

// Thrown for wrong shapes, ranks or attributes. Any other exception stands for a failure of the computation itself.
class ArgumentError : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

namespace detail {

class DtypeError : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

inline void append(std::string& text, const char* part) {
    text += part;
}
inline void append(std::string& text, const std::string& part) {
    text += part;
}
template <typename Number, typename = std::enable_if_t<std::is_arithmetic<Number>::value>>
void append(std::string& text, Number part) {
    text += std::to_string(part);
}

template <typename... Parts>
[[noreturn]] D500_COLD void refuse(const Parts&... parts) {
    std::string message;
    (append(message, parts), ...);
    throw ArgumentError(message);
}

}  // namespace detail

// Throws an ArgumentError unless a condition holds: require(x.rank() == 2, "x has rank ", x.rank(), ", not 2").
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) detail::refuse(parts...);
}

namespace detail {

// The shape of a view; the elements' type makes no difference to it.
class ViewShape {
  public:
    // Number of elements.
    D500_HOST_DEVICE int64_t size() const { return size_; }
    D500_HOST_DEVICE int rank() const { return rank_; }

    // Size of a dimension; negative ones count from the last.
    D500_HOST_DEVICE int64_t shape(int dimension) const {
        const int i = dimension < 0 ? dimension + rank_ : dimension;
#ifndef __CUDA_ARCH__
        require(0 <= i && i < rank_, "dimension ", dimension, " of a tensor of rank ", rank_, " was asked for");
#endif
        return size_of(i);
    }

  protected:
    ViewShape() = default;
    D500_NOINLINE ViewShape(const int64_t* shape, int rank) : shape_(shape), rank_(rank) {
        for (int i = 0; i < rank; ++i) {
            size_ *= shape[i];
            if (i < kInline) inline_shape_[i] = shape[i];
        }
    }

    D500_HOST_DEVICE int64_t size_of(int dimension) const {
#ifdef __CUDA_ARCH__
        return inline_shape_[dimension];
#else
        return shape_[dimension];
#endif
    }

  private:
    static constexpr int kInline = 8;

    const int64_t* shape_ = nullptr;
    int rank_ = 0;
    int64_t size_ = 1;
    int64_t inline_shape_[kInline] = {};  // in kernels the caller's array cannot be read
};

}  // namespace detail

// A tensor, row-major without gaps: View<const T> of an input, View<T> of an output. It does not own the elements, and
// is passed by value, also to CUDA kernels (up to rank 8).
//
// size() is the number of elements, rank() that of dimensions, shape(i) the size of one, shape(-1) of the last.
//
// With D500_CHECK_BOUNDS defined, every index is checked on the CPU.
template <typename T>
class View : public detail::ViewShape {
  public:
    using element = T;

    View() = default;
    View(T* data, const int64_t* shape, int rank) : ViewShape(shape, rank), data_(data) {}

    // All elements in a row: data()[0] to data()[size() - 1].
    D500_HOST_DEVICE T* data() const { return data_; }
    D500_HOST_DEVICE T* begin() const { return data_; }
    D500_HOST_DEVICE T* end() const { return data_ + size(); }

    D500_HOST_DEVICE T& operator[](int64_t index) const {
        check_bound(index, size());
        return data_[index];
    }

    // One index a dimension: x(n, c, h, w).
    template <typename... Indices>
    D500_HOST_DEVICE T& operator()(Indices... indices) const {
        static_assert(sizeof...(Indices) > 0, "deep500: a view is indexed by x[i] or by x(i, j, ...)");
#if defined(D500_CHECK_BOUNDS) && !defined(__CUDA_ARCH__)
        require(sizeof...(Indices) == rank(), sizeof...(Indices), " indices were given for a tensor of rank ", rank());
#endif
        int64_t offset = 0;
        int dimension = 0;
        ((check_bound(indices, size_of(dimension)), offset = offset * size_of(dimension) + indices, ++dimension), ...);
        return data_[offset];
    }

  private:
    D500_HOST_DEVICE static void check_bound(int64_t index, int64_t size) {
#if defined(D500_CHECK_BOUNDS) && !defined(__CUDA_ARCH__)
        require(0 <= index && index < size, "index ", index, " is outside of 0 to ", size - 1);
#else
        (void)index, (void)size;
#endif
    }

    T* data_ = nullptr;
};

// A view that may be absent: an optional input; in a backward, a gradient that nobody knows or nobody asks for. (Where
// a backward takes a View instead, it gets zeros, or memory that is thrown away.)
template <typename T>
class Optional : public View<T> {
  public:
    Optional() = default;
    explicit Optional(const View<T>& view) : View<T>(view), present_(true) {}
    D500_HOST_DEVICE explicit operator bool() const { return present_; }

  private:
    bool present_ = false;
};

// Throws an ArgumentError unless two tensors have one shape.
template <typename A, typename B>
void require_same_shape(const View<A>& a, const View<B>& b, const char* name_a, const char* name_b) {
    bool same = a.rank() == b.rank();
    for (int i = 0; same && i < a.rank(); ++i) same = a.shape(i) == b.shape(i);
    require(same, name_a, " and ", name_b, " must have one shape");
}

// Some numbers that somebody else owns.
template <typename T>
class Span {
  public:
    Span(const T* data, int64_t size) : data_(data), size_(size) {}
    int64_t size() const { return size_; }
    const T* data() const { return data_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    const T& operator[](int64_t index) const {
        require(0 <= index && index < size_, "entry ", index, " of an attribute with ", size_, " was asked for");
        return data_[index];
    }

  private:
    const T* data_;
    int64_t size_;
};

// The attributes of the operator that is called, by name. What is not there, or of another kind, throws.
class Attributes {
  public:
    Attributes() = default;
    Attributes(const d5_attribute* attributes, int count) : attributes_(attributes), count_(count) {}

    int64_t integer(const char* name) const { return get(name, D5_ATTRIBUTE_INT, "a whole number").ints[0]; }
    double real(const char* name) const {
        const d5_attribute* found = find(name);  // a whole number is a number, too
        if (found && found->kind == D5_ATTRIBUTE_INT) return static_cast<double>(found->ints[0]);
        return get(name, D5_ATTRIBUTE_FLOAT, "a number").floats[0];
    }
    std::string text(const char* name) const {
        const d5_attribute& found = get(name, D5_ATTRIBUTE_STRING, "a text");
        return std::string(found.string, static_cast<size_t>(found.count));
    }
    Span<int64_t> integers(const char* name) const {
        const d5_attribute& found = get(name, D5_ATTRIBUTE_INTS, "a list of whole numbers");
        return Span<int64_t>(found.ints, found.count);
    }
    Span<double> reals(const char* name) const {
        const d5_attribute& found = get(name, D5_ATTRIBUTE_FLOATS, "a list of numbers");
        return Span<double>(found.floats, found.count);
    }
    bool has(const char* name) const { return find(name) != nullptr; }

  private:
    D500_NOINLINE const d5_attribute* find(const char* name) const {
        for (int i = 0; i < count_; ++i) {
            if (strcmp(attributes_[i].name, name) == 0) return attributes_ + i;
        }
        return nullptr;
    }
    D500_NOINLINE const d5_attribute& get(const char* name, int kind, const char* accepted) const {
        const d5_attribute* found = find(name);
        require(found != nullptr, "the attribute ", name, " was not given");
        require(found->kind == kind, "the attribute ", name, " is not ", accepted);
        return *found;
    }

    const d5_attribute* attributes_ = nullptr;
    int count_ = 0;
};

namespace detail {

// One attribute as an operator declares it.
struct DeclaredAttribute {
    const char* name;
    int kind;
    bool has_default;
    int64_t integer;
    double real;
    const char* text;
};

template <int count>
struct DeclaredAttributes {
    DeclaredAttribute list[count];
    static constexpr int size = count;
};

}  // namespace detail

// Declarations of attributes, for the `attributes` of an operator; without a default, a value has to be given.
constexpr detail::DeclaredAttribute integer(const char* name) {
    return {name, D5_ATTRIBUTE_INT, false, 0, 0, ""};
}
constexpr detail::DeclaredAttribute integer(const char* name, int64_t value) {
    return {name, D5_ATTRIBUTE_INT, true, value, 0, ""};
}
constexpr detail::DeclaredAttribute real(const char* name) {
    return {name, D5_ATTRIBUTE_FLOAT, false, 0, 0, ""};
}
constexpr detail::DeclaredAttribute real(const char* name, double value) {
    return {name, D5_ATTRIBUTE_FLOAT, true, 0, value, ""};
}
constexpr detail::DeclaredAttribute text(const char* name) {
    return {name, D5_ATTRIBUTE_STRING, false, 0, 0, ""};
}
constexpr detail::DeclaredAttribute text(const char* name, const char* value) {
    return {name, D5_ATTRIBUTE_STRING, true, 0, 0, value};
}
constexpr detail::DeclaredAttribute integers(const char* name) {
    return {name, D5_ATTRIBUTE_INTS, false, 0, 0, ""};
}
constexpr detail::DeclaredAttribute reals(const char* name) {
    return {name, D5_ATTRIBUTE_FLOATS, false, 0, 0, ""};
}

template <typename... Declared>
constexpr detail::DeclaredAttributes<sizeof...(Declared)> attributes(Declared... declared) {
    return {{declared...}};
}

}  // namespace deep500

#endif
