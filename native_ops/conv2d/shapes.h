// The sizes of a convolution's tensors, checked.
#ifndef NATIVE_OPS_CONV2D_SHAPES_H
#define NATIVE_OPS_CONV2D_SHAPES_H

#include <deep500/window.h>

namespace native_ops {

struct ConvShapes {
    int64_t images, groups;
    int64_t channels, maps;  // of one group
    deep500::WindowAxis rows, columns;

    // `y` is the output or the gradient by it; `bias` may be absent.
    template <typename T, typename Y>
    ConvShapes(const deep500::View<const T>& x, const deep500::View<const T>& weight,
               const deep500::Optional<const T>& bias, const deep500::View<Y>& y,
               const deep500::Attributes& attributes) {
        deep500::require(x.rank() == 4 && weight.rank() == 4 && y.rank() == 4, "x has the rank ", x.rank(),
                         ", the weight ", weight.rank(), " and y ", y.rank(), ", accepted are 4");
        groups = attributes.integer("groups");
        deep500::require(groups >= 1, "groups is ", groups, ", accepted are numbers from 1");
        images = x.shape(0), channels = weight.shape(1), maps = weight.shape(0) / groups;
        deep500::require(channels <= INT32_MAX && groups <= INT32_MAX && x.shape(1) == channels * groups, "x has ",
                         x.shape(1), " channels, and the weight ", channels, " for each of ", groups, " groups");
        deep500::require(weight.shape(0) == maps * groups, "the weight makes ", weight.shape(0),
                         " feature maps, accepted are multiples of the ", groups, " groups");
        deep500::require(y.shape(0) == images && y.shape(1) == maps * groups, "y has the shape ", y.shape(0), " x ",
                         y.shape(1), " x ..., accepted is ", images, " x ", maps * groups);
        deep500::require(!bias || (bias.rank() == 1 && bias.size() == maps * groups), "the bias has ", bias.size(),
                         " elements, accepted is one for each of ", maps * groups, " feature maps");
        rows = deep500::window_axis(attributes, 0, x.shape(2), weight.shape(2), y.shape(2));
        columns = deep500::window_axis(attributes, 1, x.shape(3), weight.shape(3), y.shape(3));
    }

    D500_HOST_DEVICE int64_t image_size() const { return rows.size * columns.size; }
    D500_HOST_DEVICE int64_t output_size() const { return rows.output * columns.output; }
    D500_HOST_DEVICE int64_t kernel_size() const { return rows.kernel * columns.kernel; }
};

}  // namespace native_ops

#endif
