"""Generator of a DCGAN."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import BatchNormalization, TransposedConvolution
from deep500.networks.models._dcgan import SCALES, WEIGHTS, check_doublings

__all__ = ["dcgan_generator"]


class Generator(nn.Module):
    """Transposed convolutions from one pixel to an image: ``[N, Z]`` to ``[N, C, S, S]``, values from -1 to 1."""

    def __init__(self, channels: int, noise: int, doublings: int, width: int) -> None:
        """Declare the layers; ``width`` is the number of feature maps before the last one."""
        super().__init__()
        maps = [width << level for level in reversed(range(doublings))]
        self.first = TransposedConvolution(noise, maps[0], 4, bias=False, initial=WEIGHTS)
        self.convolutions = nn.ModuleList(
            [
                TransposedConvolution(a, b, 4, stride=2, padding=1, bias=False, initial=WEIGHTS)
                for a, b in zip(maps, [*maps[1:], channels])
            ]
        )
        self.norms = nn.ModuleList([BatchNormalization(count, initial=SCALES) for count in maps])

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        x = self.first(op, op.Unsqueeze(x, [2, 3]))
        for norm, convolution in zip(self.norms, self.convolutions):
            x = convolution(op, op.Relu(norm(op, x)))
        image: ir.Value = op.Tanh(x)
        return image


def dcgan_generator(
    *, classes: int = 3, shape: Sequence[int] = (100,), image_size: int = 64, width: int = 64
) -> nn.Module:
    """Return the generator of a deep convolutional GAN: noise ``[N, Z]`` to images ``[N, C, S, S]``.

    Source: A. Radford et al., "Unsupervised representation learning with deep convolutional generative adversarial
    networks", ICLR 2016; first weights normal with deviation 0.02.

    Args:
        classes: Number of channels of the images.
        shape: Shape of one sample of noise, ``(Z,)``.
        image_size: Height and width of the images, a power of two.
        width: Feature maps before the last convolution; each earlier one has twice as many.

    Raises:
        InvalidInputError: The noise is no vector, or another argument is not accepted.
    """
    if len(shape) != 1:
        raise InvalidInputError(f"The model dcgan_generator needs samples of shape (Z,); received {tuple(shape)}.")
    doublings = check_doublings("image_size", image_size)
    return Generator(classes, shape[0], doublings, check_count("width", width, least=1))
