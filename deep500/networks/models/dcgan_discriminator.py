"""Discriminator of a DCGAN."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, Convolution
from deep500.networks.models._arguments import check_image
from deep500.networks.models._dcgan import SCALES, WEIGHTS, check_doublings

__all__ = ["dcgan_discriminator"]


class Discriminator(nn.Module):
    """Strided convolutions from an image to one pixel: ``[N, C, S, S]`` to ``[N, classes]``."""

    def __init__(self, classes: int, channels: int, doublings: int, width: int) -> None:
        """Declare the layers; the first convolution has no normalisation."""
        super().__init__()
        maps = [width << level for level in range(doublings)]
        self.convolutions = nn.ModuleList(
            [
                Convolution(a, b, 4, stride=2, padding=1, bias=False, initial=WEIGHTS)
                for a, b in zip([channels, *maps], maps)
            ]
        )
        self.norms = nn.ModuleList([BatchNormalization(count, initial=SCALES) for count in maps[1:]])
        self.last = Convolution(maps[-1], classes, 4, bias=False, initial=WEIGHTS)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        for level, convolution in enumerate(self.convolutions):
            x = convolution(op, x)
            if level:
                x = self.norms[level - 1](op, x)
            x = op.LeakyRelu(x, alpha=0.2)
        scores: ir.Value = op.Flatten(self.last(op, x), axis=1)
        return scores


def dcgan_discriminator(*, classes: int = 1, shape: Sequence[int] = (3, 64, 64), width: int = 64) -> nn.Module:
    """Return the discriminator of a deep convolutional GAN: a score of each image, high where it is real.

    Source: A. Radford et al., "Unsupervised representation learning with deep convolutional generative adversarial
    networks", ICLR 2016; first weights normal with deviation 0.02. The scores are those before the sigmoid.

    Args:
        classes: Number of scores.
        shape: Shape of one sample, ``(C, S, S)``; S is a power of two.
        width: Feature maps of the first convolution; each later one has twice as many.

    Raises:
        InvalidInputError: The sample is no such image, or another argument is not accepted.
    """
    channels, height, columns = check_image("dcgan_discriminator", shape)
    if height != columns:
        raise InvalidInputError(f"The model dcgan_discriminator needs square images; received {height}x{columns}.")
    doublings = check_doublings("The image's side", height)
    return Discriminator(classes, channels, doublings, check_count("width", width, least=1))
