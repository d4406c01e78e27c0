// The exponential function in a form that compilers vectorise; the standard library's is called number by number unless
// numbers may be computed less exactly everywhere (-ffast-math).
#ifndef NATIVE_OPS_SOFTMAX_CROSSENTROPY_EXPONENTIAL_H
#define NATIVE_OPS_SOFTMAX_CROSSENTROPY_EXPONENTIAL_H

#include <deep500/types.h>

namespace native_ops {

// e^x, wrong by less than 3 units in the last place, with 0, infinity and NaN where they belong.
//
// With n the whole number nearest to x / ln 2, e^x = 2^n e^r, |r| <= ln(2) / 2, and e^r is its Taylor series up to the
// term that no longer changes it: r^8 / 8! < 2^-27, and r^14 / 14! < 2^-57. ln 2 is split in two so that n times the
// first part is exact (W. J. Cody, W. Waite, "Software Manual for the Elementary Functions", 1980). 2^n is multiplied
// in two halves, since it may lie outside of the dtype where e^x does not.
inline float exponential(float x) {
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it leaves n in the last bits
    x = x < -105.0f ? -105.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float shifted = x * 1.44269504f + kShift;
    const uint32_t n = deep500::detail::bits_as<uint32_t>(shifted) - deep500::detail::bits_as<uint32_t>(kShift);
    const float whole = shifted - kShift;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float power = 1.0f / 5040;
    power = power * r + 1.0f / 720;
    power = power * r + 1.0f / 120;
    power = power * r + 1.0f / 24;
    power = power * r + 1.0f / 6;
    power = power * r + 0.5f;
    power = power * r + 1.0f;
    power = power * r + 1.0f;
    const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1), rest = n - half;
    return power * deep500::detail::bits_as<float>((half + 127u) << 23) *
           deep500::detail::bits_as<float>((rest + 127u) << 23);
}

inline double exponential(double x) {
    constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    const double shifted = x * 1.4426950408889634 + kShift;
    const uint64_t n = deep500::detail::bits_as<uint64_t>(shifted) - deep500::detail::bits_as<uint64_t>(kShift);
    const double whole = shifted - kShift;
    const double r = (x - whole * 6.93145751953125e-1) - whole * 1.42860682030941723212e-6;
    double power = 1.0 / 6227020800;
    power = power * r + 1.0 / 479001600;
    power = power * r + 1.0 / 39916800;
    power = power * r + 1.0 / 3628800;
    power = power * r + 1.0 / 362880;
    power = power * r + 1.0 / 40320;
    power = power * r + 1.0 / 5040;
    power = power * r + 1.0 / 720;
    power = power * r + 1.0 / 120;
    power = power * r + 1.0 / 24;
    power = power * r + 1.0 / 6;
    power = power * r + 0.5;
    power = power * r + 1.0;
    power = power * r + 1.0;
    const uint64_t half = static_cast<uint64_t>(static_cast<int64_t>(n) >> 1), rest = n - half;
    return power * deep500::detail::bits_as<double>((half + 1023u) << 52) *
           deep500::detail::bits_as<double>((rest + 1023u) << 52);
}

}  // namespace native_ops

#endif
