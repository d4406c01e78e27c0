"""Residual network of 152 layers for ImageNet."""

from __future__ import annotations

from collections.abc import Sequence

from onnxscript import nn

from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet152"]


def resnet152(*, classes: int = 1000, shape: Sequence[int] = (3, 224, 224), width: int = 64) -> nn.Module:
    """Return ResNet-152, the residual network of 152 layers for ImageNet.

    Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016, Table 1.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``.
        width: Feature maps of the first stage.

    Raises:
        InvalidInputError: As :func:`deep500.networks.models.imagenet_resnet.imagenet_resnet`.
    """
    return imagenet_resnet(classes=classes, shape=shape, depth=152, width=width)
