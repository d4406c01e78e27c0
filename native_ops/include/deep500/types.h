// Element types: which there are, their codes and names, and 16-bit floats that no compiler is needed for.
#ifndef DEEP500_TYPES_H
#define DEEP500_TYPES_H

#include <deep500/abi.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#ifdef __CUDACC__
#define D500_HOST_DEVICE __host__ __device__
#else
#define D500_HOST_DEVICE
#endif

namespace deep500 {

namespace detail {

template <typename To, typename From>
D500_HOST_DEVICE inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "deep500: bits_as needs types of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// bfloat16: the upper half of a float.
struct Bfloat16Format {
    D500_HOST_DEVICE static uint16_t encode(float value) {
        const uint32_t bits = bits_as<uint32_t>(value);
        if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);  // NaN stays NaN
        return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }
    D500_HOST_DEVICE static float decode(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
};

// IEEE 754 binary16. The additions of constants move the exponent from one bias to the other.
struct Float16Format {
    D500_HOST_DEVICE static uint16_t encode(float value) {
        uint32_t bits = bits_as<uint32_t>(value);
        const uint32_t sign = (bits >> 16) & 0x8000u;
        bits &= 0x7fffffffu;
        if (bits >= 0x47800000u) {  // from 65536 on, infinity, NaN
            const uint32_t special = bits > 0x7f800000u ? 0x7e00u | ((bits >> 13) & 0x3ffu) : 0x7c00u;
            return static_cast<uint16_t>(sign | special);
        }
        if (bits < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the subnormal's bits at the end, rounded
            const float shifted = bits_as<float>(bits) + 0.5f;
            return static_cast<uint16_t>(sign | (bits_as<uint32_t>(shifted) - 0x3f000000u));
        }
        bits += 0xc8000fffu + ((bits >> 13) & 1u);
        return static_cast<uint16_t>(sign | (bits >> 13));
    }
    D500_HOST_DEVICE static float decode(uint16_t half) {
        uint32_t bits = static_cast<uint32_t>(half & 0x7fffu) << 13;
        const uint32_t exponent = bits & 0x0f800000u;
        bits += 0x38000000u;
        if (exponent == 0x0f800000u) {  // infinity, NaN
            bits += 0x38000000u;
        } else if (exponent == 0) {  // zero, subnormal
            bits = bits_as<uint32_t>(bits_as<float>(bits + 0x00800000u) - bits_as<float>(0x38800000u));
        }
        return bits_as<float>(bits | (static_cast<uint32_t>(half & 0x8000u) << 16));
    }
};

}  // namespace detail

// A float of 16 bits: converts by itself from numbers (rounded to the nearest, ties to even) and to float, in which all
// arithmetic is done.
template <typename Format>
struct SmallFloat {
    uint16_t bits;

    SmallFloat() = default;
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic<Number>::value>>
    D500_HOST_DEVICE SmallFloat(Number value) : bits(Format::encode(static_cast<float>(value))) {}
    D500_HOST_DEVICE operator float() const { return Format::decode(bits); }

    D500_HOST_DEVICE static SmallFloat from_bits(uint16_t bits) {
        SmallFloat result;
        result.bits = bits;
        return result;
    }

    template <typename Number>
    D500_HOST_DEVICE SmallFloat& operator+=(Number value) {
        return *this = SmallFloat(static_cast<float>(*this) + static_cast<float>(value));
    }
    template <typename Number>
    D500_HOST_DEVICE SmallFloat& operator-=(Number value) {
        return *this = SmallFloat(static_cast<float>(*this) - static_cast<float>(value));
    }
    template <typename Number>
    D500_HOST_DEVICE SmallFloat& operator*=(Number value) {
        return *this = SmallFloat(static_cast<float>(*this) * static_cast<float>(value));
    }
    template <typename Number>
    D500_HOST_DEVICE SmallFloat& operator/=(Number value) {
        return *this = SmallFloat(static_cast<float>(*this) / static_cast<float>(value));
    }
};

using bfloat16 = SmallFloat<detail::Bfloat16Format>;
using float16 = SmallFloat<detail::Float16Format>;

namespace detail {

template <typename T>
struct ComputeType {
    using type = T;
};
template <typename Format>
struct ComputeType<SmallFloat<Format>> {
    using type = float;
};

}  // namespace detail

// The type to compute in: float for 16-bit floats, else the type itself.
template <typename T>
using compute_type = typename detail::ComputeType<std::remove_const_t<T>>::type;

// Some types, as a value: deep500::dtypes<float, double>().
template <typename... T>
struct TypeList {
    static constexpr int size = sizeof...(T);
};

template <typename... T>
constexpr TypeList<T...> dtypes() {
    return {};
}

// What is known of an element type; `code` is -1 of types that no tensor can have.
template <typename T>
struct DtypeOf {
    static constexpr int code = -1;
    static constexpr int bits = 0;
    static constexpr const char* name = "unknown";
};

#define D500_DTYPE(TYPE, CODE, NAME)                  \
    template <>                                       \
    struct DtypeOf<TYPE> {                            \
        static constexpr int code = CODE;             \
        static constexpr int bits = 8 * sizeof(TYPE); \
        static constexpr const char* name = NAME;     \
    };
D500_DTYPE(float, D5_FLOAT, "float32")
D500_DTYPE(double, D5_FLOAT, "float64")
D500_DTYPE(float16, D5_FLOAT, "float16")
D500_DTYPE(bfloat16, D5_BFLOAT, "bfloat16")
D500_DTYPE(std::complex<float>, D5_COMPLEX, "complex64")
D500_DTYPE(std::complex<double>, D5_COMPLEX, "complex128")
D500_DTYPE(int8_t, D5_INT, "int8")
D500_DTYPE(int16_t, D5_INT, "int16")
D500_DTYPE(int32_t, D5_INT, "int32")
D500_DTYPE(int64_t, D5_INT, "int64")
D500_DTYPE(uint8_t, D5_UINT, "uint8")
D500_DTYPE(uint16_t, D5_UINT, "uint16")
D500_DTYPE(uint32_t, D5_UINT, "uint32")
D500_DTYPE(uint64_t, D5_UINT, "uint64")
D500_DTYPE(bool, D5_BOOL, "bool")
#undef D500_DTYPE

namespace detail {

// A dtype as one number that can be compared while compiling; 0 for types that no tensor can have.
template <typename T>
constexpr int dtype_id() {
    using Known = DtypeOf<std::remove_const_t<T>>;
    return Known::code < 0 ? 0 : (Known::code + 1) * 1000 + Known::bits;
}

constexpr int dtype_id(d5_dtype dtype) {
    return dtype.lanes == 1 ? (dtype.code + 1) * 1000 + dtype.bits : 0;
}

// Whether gradients exist by tensors of a dtype: floats and complex numbers.
constexpr bool is_differentiable(int id) {
    const int code = id / 1000 - 1;
    return code == D5_FLOAT || code == D5_BFLOAT || code == D5_COMPLEX;
}

inline std::string dtype_name(int id) {
    const char* kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    const int code = id / 1000 - 1;
    if (code < 0 || code > D5_BOOL) return "an unknown dtype";
    return code == D5_BOOL ? "bool" : kinds[code] + std::to_string(id % 1000);
}

}  // namespace detail

}  // namespace deep500

namespace std {

template <>
struct numeric_limits<deep500::bfloat16> : numeric_limits<float> {
    static constexpr int digits = 8;
    D500_HOST_DEVICE static deep500::bfloat16 min() { return deep500::bfloat16::from_bits(0x0080); }
    D500_HOST_DEVICE static deep500::bfloat16 max() { return deep500::bfloat16::from_bits(0x7f7f); }
    D500_HOST_DEVICE static deep500::bfloat16 lowest() { return deep500::bfloat16::from_bits(0xff7f); }
    D500_HOST_DEVICE static deep500::bfloat16 epsilon() { return deep500::bfloat16::from_bits(0x3c00); }
    D500_HOST_DEVICE static deep500::bfloat16 infinity() { return deep500::bfloat16::from_bits(0x7f80); }
    D500_HOST_DEVICE static deep500::bfloat16 quiet_NaN() { return deep500::bfloat16::from_bits(0x7fc0); }
};

template <>
struct numeric_limits<deep500::float16> : numeric_limits<float> {
    static constexpr int digits = 11;
    D500_HOST_DEVICE static deep500::float16 min() { return deep500::float16::from_bits(0x0400); }
    D500_HOST_DEVICE static deep500::float16 max() { return deep500::float16::from_bits(0x7bff); }
    D500_HOST_DEVICE static deep500::float16 lowest() { return deep500::float16::from_bits(0xfbff); }
    D500_HOST_DEVICE static deep500::float16 epsilon() { return deep500::float16::from_bits(0x1400); }
    D500_HOST_DEVICE static deep500::float16 infinity() { return deep500::float16::from_bits(0x7c00); }
    D500_HOST_DEVICE static deep500::float16 quiet_NaN() { return deep500::float16::from_bits(0x7e00); }
};

}  // namespace std

#endif
