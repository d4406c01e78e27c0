// The order of numbers by their magnitude, as whole numbers.
#ifndef NATIVE_OPS_SPARSE_TOPK_MAGNITUDE_H
#define NATIVE_OPS_SPARSE_TOPK_MAGNITUDE_H

#include <deep500/tensor.h>

namespace native_ops {

template <typename T>
struct FloatBits;
template <>
struct FloatBits<float> {
    using type = uint32_t;
    static constexpr type infinity = 0x7f800000u;
};
template <>
struct FloatBits<double> {
    using type = uint64_t;
    static constexpr type infinity = 0x7ff0000000000000u;
};
template <>
struct FloatBits<deep500::bfloat16> {
    using type = uint16_t;
    static constexpr type infinity = 0x7f80u;
};
template <>
struct FloatBits<deep500::float16> {
    using type = uint16_t;
    static constexpr type infinity = 0x7c00u;
};

// A whole number that is the larger, the larger |x| is: its bits without the sign. Every NaN has one that is larger
// than all others, so that it is not left out unseen.
template <typename T>
D500_HOST_DEVICE inline typename FloatBits<T>::type magnitude(T x) {
    using Bits = typename FloatBits<T>::type;
    constexpr Bits infinity = FloatBits<T>::infinity;
    const Bits bits = static_cast<Bits>(deep500::detail::bits_as<Bits>(x) & static_cast<Bits>(~Bits(0)) >> 1);
    return bits > infinity ? static_cast<Bits>(infinity + 1) : bits;
}

// Which elements are taken: all of a larger magnitude than the threshold, and the first ones that have it.
template <typename Bits>
struct Selection {
    Bits threshold;
    int64_t ties;  // how many have the threshold itself
};

// Magnitudes are sorted by a digit after the other, the highest first.
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;

// Whether a magnitude begins with the digits that the threshold is known to begin with: those above `shift`.
template <typename Bits>
D500_HOST_DEVICE inline bool begins_with(Bits magnitude, Bits threshold, int shift) {
    return shift + kDigitBits >= static_cast<int>(8 * sizeof(Bits)) ||
           (magnitude >> (shift + kDigitBits)) == (threshold >> (shift + kDigitBits));
}
template <typename Bits>
D500_HOST_DEVICE inline int digit_of(Bits magnitude, int shift) {
    return static_cast<int>((magnitude >> shift) & static_cast<Bits>(kDigits - 1));
}

// Adds the threshold's next digit, and counts down the elements above it. `counts` says how many elements begin with
// the digits so far and go on with each digit.
template <typename Bits, typename Count>
D500_HOST_DEVICE inline void refine(Selection<Bits>& selection, const Count* counts, int shift) {
    int digit = kDigits - 1;
    for (; digit > 0 && static_cast<int64_t>(counts[digit]) < selection.ties; --digit) {
        selection.ties -= static_cast<int64_t>(counts[digit]);
    }
    selection.threshold = static_cast<Bits>(selection.threshold | static_cast<Bits>(digit) << shift);
}

// How many elements before a place are above the threshold, and how many have it.
struct Passed {
    int64_t above, equal;
};

// Where an element goes that is taken, or -1. Its place counts what was passed before it.
template <typename Bits>
D500_HOST_DEVICE inline int64_t target(Bits magnitude, const Selection<Bits>& selection, const Passed& passed) {
    const int64_t taken_ties = passed.equal < selection.ties ? passed.equal : selection.ties;
    const bool is_taken =
        magnitude > selection.threshold || (magnitude == selection.threshold && passed.equal < selection.ties);
    return is_taken ? passed.above + taken_ties : -1;
}

// The number of elements to take, checked, from the tensors of a forward.
template <typename X, typename Y>
int64_t checked_number(const deep500::View<X>& x, const deep500::View<Y>& values, const deep500::View<int64_t>& indices,
                       const deep500::Attributes& attributes) {
    const int64_t k = attributes.integer("k");
    deep500::require(0 <= k && k <= x.size(), "k is ", k, " for a tensor of ", x.size(), " elements");
    deep500::require(values.rank() == 1 && values.size() == k && indices.rank() == 1 && indices.size() == k,
                     "values has ", values.size(), " elements and indices ", indices.size(), ", accepted are ", k);
    return k;
}

}  // namespace native_ops

#endif
