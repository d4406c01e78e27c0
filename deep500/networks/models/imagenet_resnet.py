"""Residual networks for large images."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.networks.layers import Linear
from deep500.networks.models._arguments import check_image
from deep500.networks.models._residual import ResidualFeatures

__all__ = ["imagenet_resnet"]


class ImageNetResNet(nn.Module):
    """Residual features and a linear layer: ``[N, C, H, W]`` to ``[N, classes]``."""

    def __init__(self, classes: int, features: ResidualFeatures) -> None:
        """Declare the layers."""
        super().__init__()
        self.features = features
        self.classifier = Linear(features.features, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        scores: ir.Value = self.classifier(op, self.features(op, x))
        return scores


def imagenet_resnet(
    *, classes: int = 1000, shape: Sequence[int] = (3, 224, 224), depth: int = 50, width: int = 64
) -> nn.Module:
    """Return a residual network of the ImageNet form, 18 to 152 layers deep.

    Source: K. He et al., "Deep residual learning for image recognition", CVPR 2016, Table 1; the stride of a bottleneck
    is in its 3x3 convolution. First weights as in K. He et al., "Delving deep into rectifiers", ICCV 2015.

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(C, H, W)``, of any size.
        depth: Number of layers with weights on the longest path: 18, 34, 50, 101 or 152.
        width: Feature maps of the first stage; each later stage has twice as many.

    Raises:
        InvalidInputError: The sample is no image, or the depth or width is not accepted.
    """
    channels, _, _ = check_image("imagenet_resnet", shape)
    return ImageNetResNet(classes, ResidualFeatures(channels, depth, width))
