"""VGG networks."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution, Dropout, Linear
from deep500.networks.models._arguments import check_flag, check_image, check_rate

__all__ = ["vgg"]

#: Convolutions of each stage by depth: configurations A, B, D and E of the paper's Table 1.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(nn.Module):
    """Five stages of 3x3 convolutions, each halving the image, then three linear layers."""

    def __init__(
        self, channels: int, stages: Sequence[int], width: int, pixels: int, layers: Sequence[int], rate: float
    ) -> None:
        """Declare the layers; those with normalisation are made by :class:`NormalizedVGG`.

        Args:
            channels: Channels of the image.
            stages: Number of convolutions of each stage.
            width: Feature maps of the first stage; each later one has twice as many, eight times at most.
            pixels: Pixels that are left of the image.
            layers: Sizes of the linear layers.
            rate: Share of values dropped before the last two linear layers.
        """
        super().__init__()
        self.ends = [sum(stages[: i + 1]) - 1 for i in range(len(stages))]
        maps = [min(8, 1 << stage) * width for stage, count in enumerate(stages) for _ in range(count)]
        self.convolutions = nn.ModuleList([self.convolution(a, b) for a, b in zip([channels, *maps], maps)])
        self.maps = maps
        flat = maps[-1] * pixels
        self.linear1 = Linear(flat, layers[0])
        self.dropout1 = Dropout(rate)
        self.linear2 = Linear(layers[0], layers[1])
        self.dropout2 = Dropout(rate)
        self.linear3 = Linear(layers[1], layers[2], gain=1.0)

    def convolution(self, inputs: int, outputs: int) -> nn.Module:
        """Return one convolution."""
        return Convolution(inputs, outputs, 3, padding=1)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for index, convolution in enumerate(self.convolutions):
            x = op.Relu(convolution(op, x))
            if index in self.ends:
                x = op.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])
        x = self.dropout1(op, op.Relu(self.linear1(op, op.Flatten(x, axis=1))))
        x = self.dropout2(op, op.Relu(self.linear2(op, x)))
        scores: ir.Value = self.linear3(op, x)
        return scores


class NormalizedConvolution(nn.Module):
    """A 3x3 convolution and a normalisation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Declare the layers; the convolution has a bias, as in the published numbers of parameters."""
        super().__init__()
        self.conv = Convolution(inputs, outputs, 3, padding=1)
        self.norm = BatchNormalization(outputs)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        result: ir.Value = self.norm(op, self.conv(op, x))
        return result


class NormalizedVGG(VGG):
    """A VGG network with a normalisation after each convolution."""

    def convolution(self, inputs: int, outputs: int) -> nn.Module:
        """Return one convolution with its normalisation."""
        return NormalizedConvolution(inputs, outputs)


def vgg(
    *,
    classes: int = 1000,
    shape: Sequence[int] = (3, 224, 224),
    depth: int = 16,
    normalization: bool = False,
    width: int = 64,
    hidden: int = 4096,
    dropout: float = 0.5,
) -> nn.Module:
    """Return a VGG network: plain stacks of 3x3 convolutions, 11 to 19 layers deep.

    Source: K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR
    2015, Table 1. First weights as in K. He et al., "Delving deep into rectifiers", ICCV 2015.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        depth: Number of layers with weights: 11, 13, 16 or 19.
        normalization: Whether a batch normalisation follows each convolution.
        width: Feature maps of the first stage.
        hidden: Size of the two hidden linear layers.
        dropout: Share of their values that is dropped in training.

    Raises:
        InvalidInputError: The sample is no image or smaller than 32x32, or another argument is not accepted.
    """
    channels, height, columns = check_image("vgg", shape, least=32)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth not in _STAGES:
        raise InvalidInputError(f"depth was given as {depth!r}; accepted are {', '.join(map(str, _STAGES))}.")
    maps = check_count("width", width, least=1)
    size = check_count("hidden", hidden, least=1)
    kind = NormalizedVGG if check_flag("normalization", normalization) else VGG
    pixels = (height // 32) * (columns // 32)
    return kind(channels, _STAGES[depth], maps, pixels, (size, size, classes), check_rate("dropout", dropout))
