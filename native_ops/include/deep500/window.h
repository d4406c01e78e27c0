// Windows that slide over the rows and columns of images: where they lie, as ONNX defines it for Conv and MaxPool.
#ifndef DEEP500_WINDOW_H
#define DEEP500_WINDOW_H

#include <deep500/tensor.h>

namespace deep500 {

// Rounded down and up, for a positive divisor.
D500_HOST_DEVICE constexpr int64_t floor_quotient(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}
D500_HOST_DEVICE constexpr int64_t ceil_quotient(int64_t a, int64_t b) {
    return -floor_quotient(-a, b);
}

// The windows along one axis: element k of window o is element o * stride + k * dilation - begin of the input.
struct WindowAxis {
    int64_t size;    // of the input
    int64_t kernel;  // elements of a window
    int64_t stride;
    int64_t dilation;
    int64_t begin;   // padding before the input
    int64_t output;  // number of windows

    D500_HOST_DEVICE int64_t place(int64_t window, int64_t element) const {
        return window * stride + element * dilation - begin;
    }
    // The first window whose element k lies in the input, and the one after the last.
    D500_HOST_DEVICE int64_t first(int64_t element) const {
        const int64_t window = ceil_quotient(begin - element * dilation, stride);
        return window < 0 ? 0 : window > output ? output : window;
    }
    D500_HOST_DEVICE int64_t last(int64_t element) const {
        const int64_t window = floor_quotient(size - 1 + begin - element * dilation, stride) + 1;
        return window < 0 ? 0 : window > output ? output : window;
    }
};

namespace detail {

inline int64_t window_number(const Attributes& attributes, const char* name, int index, int count, int64_t minimum) {
    const auto values = attributes.integers(name);
    require(values.size() == count, name, " has ", values.size(), " entries, accepted are ", count);
    // Then no product of two of them leaves 64 bits.
    require(minimum <= values[index] && values[index] <= INT32_MAX, name, " has the entry ", values[index],
            ", accepted are entries from ", minimum, " to ", INT32_MAX);
    return values[index];
}

}  // namespace detail

// Returns the windows along the rows (axis 0) or columns (1) of an image, from the attributes strides, dilations, pads
// and, perhaps, ceil_mode. Throws an ArgumentError unless there are as many as the output has places.
inline WindowAxis window_axis(const Attributes& attributes, int axis, int64_t size, int64_t kernel, int64_t output) {
    require(1 <= kernel && kernel <= INT32_MAX, "a kernel has the size ", kernel, ", accepted are sizes from 1");
    const WindowAxis found = {size,
                              kernel,
                              detail::window_number(attributes, "strides", axis, 2, 1),
                              detail::window_number(attributes, "dilations", axis, 2, 1),
                              detail::window_number(attributes, "pads", axis, 4, 0),
                              output};
    const int64_t end = detail::window_number(attributes, "pads", 2 + axis, 4, 0);
    const int64_t reach = (kernel - 1) * found.dilation + 1;
    const int64_t room = size + found.begin + end - reach;
    require(room >= 0, "windows of ", reach, " elements do not fit into ", size, " with pads of ", found.begin, " and ",
            end);
    int64_t expected = room / found.stride + 1;
    if (attributes.has("ceil_mode") && attributes.integer("ceil_mode") != 0) {
        expected = ceil_quotient(room, found.stride) + 1;
        if ((expected - 1) * found.stride >= size + found.begin) --expected;  // it would start in the padding after
    }
    require(output == expected, "the output has the size ", output, ", and there are ", expected, " windows");
    return found;
}

}  // namespace deep500

#endif
