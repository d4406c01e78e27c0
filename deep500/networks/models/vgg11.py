"""VGG network of 11 layers."""

from __future__ import annotations

from collections.abc import Sequence

from onnxscript import nn

from deep500.networks.models.vgg import vgg

__all__ = ["vgg11"]


def vgg11(
    *,
    classes: int = 1000,
    shape: Sequence[int] = (3, 224, 224),
    normalization: bool = False,
    width: int = 64,
    hidden: int = 4096,
    dropout: float = 0.5,
) -> nn.Module:
    """Return VGG-11, the plain network of 11 layers with 3x3 convolutions.

    Source: K. Simonyan and A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR
    2015, Table 1.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        normalization: Whether a batch normalisation follows each convolution.
        width: Feature maps of the first stage.
        hidden: Size of the two hidden linear layers.
        dropout: Share of their values that is dropped in training.

    Raises:
        InvalidInputError: As :func:`deep500.networks.models.vgg.vgg`.
    """
    return vgg(
        classes=classes,
        shape=shape,
        depth=11,
        normalization=normalization,
        width=width,
        hidden=hidden,
        dropout=dropout,
    )
