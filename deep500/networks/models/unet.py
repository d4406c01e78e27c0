"""U-Net."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.core.texts import shown
from deep500.networks.layers import BatchNormalization, Convolution, TransposedConvolution, he_normal
from deep500.networks.models._arguments import check_flag, check_image

__all__ = ["unet"]

#: What makes images larger again.
_UPSAMPLINGS = ("transposed", "resize")


class DoubleConvolution(nn.Module):
    """Two 3x3 convolutions with ReLU and, if wanted, normalisation: ``[N, I, H, W]`` to ``[N, O, H, W]``."""

    def __init__(self, inputs: int, outputs: int, normalized: bool) -> None:
        """Declare the layers; with a normalisation the convolutions have no bias."""
        super().__init__()
        self.normalized = normalized
        self.conv1 = Convolution(inputs, outputs, 3, padding=1, bias=not normalized)
        self.conv2 = Convolution(outputs, outputs, 3, padding=1, bias=not normalized)
        if normalized:
            self.norm1 = BatchNormalization(outputs)
            self.norm2 = BatchNormalization(outputs)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.conv1(op, x)
        x = self.conv2(op, op.Relu(self.norm1(op, x) if self.normalized else x))
        result: ir.Value = op.Relu(self.norm2(op, x) if self.normalized else x)
        return result


class Upsampling(nn.Module):
    """Twice the height and width with half the feature maps: ``[N, 2O, H, W]`` to ``[N, O, 2H, 2W]``."""

    def __init__(self, outputs: int, kind: str) -> None:
        """Declare a transposed 2x2 convolution, or a 1x1 convolution that follows an interpolation."""
        super().__init__()
        self.kind = kind
        self.conv = (
            TransposedConvolution(2 * outputs, outputs, 2, stride=2)
            if kind == "transposed"
            else Convolution(2 * outputs, outputs, 1)
        )

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        if self.kind == "resize":
            x = op.Resize(x, None, [1.0, 1.0, 2.0, 2.0], mode="linear")
        result: ir.Value = self.conv(op, x)
        return result


class UNet(nn.Module):
    """A path that halves the image ``depth`` times, one back to its size, and links between equal sizes."""

    def __init__(self, classes: int, channels: int, depth: int, width: int, kind: str, normalized: bool) -> None:
        """Declare the layers."""
        super().__init__()
        maps = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList([DoubleConvolution(a, b, normalized) for a, b in zip([channels, *maps], maps)])
        self.enlarge = nn.ModuleList([Upsampling(outputs, kind) for outputs in reversed(maps[:-1])])
        self.up = nn.ModuleList([DoubleConvolution(2 * n, n, normalized) for n in reversed(maps[:-1])])
        self.classifier = Convolution(width, classes, 1, initial=he_normal(width, 1.0))

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        levels: list[ir.Value] = []
        for level, block in enumerate(self.down):
            x = block(op, op.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2]) if level else x)
            levels.append(x)
        for enlarge, block, left in zip(self.enlarge, self.up, reversed(levels[:-1])):
            x = block(op, op.Concat(left, enlarge(op, x), axis=1))
        scores: ir.Value = self.classifier(op, x)
        return scores


def unet(
    *,
    classes: int = 2,
    shape: Sequence[int] = (1, 256, 256),
    depth: int = 4,
    width: int = 64,
    upsampling: str = "transposed",
    normalization: bool = False,
) -> nn.Module:
    """Return U-Net, which gives every pixel scores: ``[N, C, H, W]`` to ``[N, classes, H, W]``.

    Source: O. Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation", MICCAI 2015; the
    convolutions are padded, so that the scores have the size of the image. First weights as in K. He et al., "Delving
    deep into rectifiers", ICCV 2015, which the paper's scheme is.

    Args:
        classes: Number of classes of a pixel.
        shape: Shape of one sample, ``(C, H, W)``; height and width are multiples of ``2**depth``.
        depth: How many times the image is halved.
        width: Feature maps of the first level; each deeper one has twice as many.
        upsampling: ``"transposed"`` (a transposed convolution) or ``"resize"`` (interpolation and a 1x1 convolution).
        normalization: Whether a batch normalisation follows each 3x3 convolution.

    Raises:
        InvalidInputError: The sample is no image of such a size, or another argument is not accepted.
    """
    channels, height, columns = check_image("unet", shape)
    levels = check_count("depth", depth, least=1)
    if levels > 30 or height % (1 << levels) or columns % (1 << levels):
        raise InvalidInputError(
            f"A {height}x{columns} image cannot be halved {levels} times. Use one whose sides are multiples of "
            f"2**depth, or another depth."
        )
    if upsampling not in _UPSAMPLINGS:
        raise InvalidInputError(
            f"upsampling was given as {shown(upsampling)}; accepted are {' and '.join(map(repr, _UPSAMPLINGS))}."
        )
    maps = check_count("width", width, least=1)
    return UNet(classes, channels, levels, maps, upsampling, check_flag("normalization", normalization))
