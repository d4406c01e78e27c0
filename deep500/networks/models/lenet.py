"""LeNet-5, with today's activations."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.errors import InvalidInputError
from deep500.networks.layers import Convolution, Linear

__all__ = ["lenet"]


class LeNet(nn.Module):
    """Two 5x5 convolutions with 2x2 pooling, then three linear layers: ``[N, C, H, W]`` to ``[N, classes]``."""

    def __init__(self, classes: int, channels: int, flat: int, padding: int) -> None:
        """Declare the layers; ``flat`` is the number of values after the second pooling."""
        super().__init__()
        self.conv1 = Convolution(channels, 6, 5, padding=padding)
        self.conv2 = Convolution(6, 16, 5, padding=padding)
        self.fc1 = Linear(flat, 120)
        self.fc2 = Linear(120, 84)
        self.fc3 = Linear(84, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for convolution in (self.conv1, self.conv2):
            x = op.MaxPool(op.Relu(convolution(op, x)), kernel_shape=[2, 2], strides=[2, 2])
        x = op.Flatten(x, axis=1)
        x = op.Relu(self.fc1(op, x))
        x = op.Relu(self.fc2(op, x))
        scores: ir.Value = self.fc3(op, x)
        return scores


def lenet(*, classes: int, shape: Sequence[int], padding: int = 2) -> nn.Module:
    """Return LeNet-5 with ReLU and maximum pooling in place of the sigmoids and trained averages of 1998.

    Source: Y. LeCun et al., "Gradient-based learning applied to document recognition", Proceedings of the IEEE 86(11),
    1998: 6 and 16 feature maps, layers of 120 and 84.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        padding: Pixels added around the input of each convolution; 2 keeps the size, 0 is the original (for 32x32).

    Raises:
        InvalidInputError: The sample is no image, or so small that nothing is left of it, or the padding is no number
            from 0.
    """
    if len(shape) != 3:
        raise InvalidInputError(f"LeNet needs samples of shape (C, H, W); received {tuple(shape)}.")
    channels, height, width = shape
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise InvalidInputError(f"padding was given as {padding!r}; accepted are whole numbers from 0.")
    sizes = []
    for size in (height, width):
        for _ in range(2):
            size = (size + 2 * padding - 4) // 2
        sizes.append(size)
    if min(sizes) < 1:
        raise InvalidInputError(
            f"Of a {height}x{width} image nothing is left after LeNet's convolutions with padding={padding}. "
            f"Use larger images or padding=2."
        )
    return LeNet(classes, channels, 16 * sizes[0] * sizes[1], padding)
