"""Residual network with an LSTM over time, for videos."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder, nn

from deep500.core.counts import check_count
from deep500.core.errors import InvalidInputError
from deep500.networks.layers import Dropout, Linear, uniform
from deep500.networks.models._arguments import check_image, check_rate
from deep500.networks.models._residual import ResidualFeatures
from deep500.networks.sequence_layers import LongShortTermMemory

__all__ = ["resnet_lstm"]


class ResNetLSTM(nn.Module):
    """Features of each frame, LSTM layers over them, a linear layer: ``[N, T, C, H, W]`` to ``[N, classes]``."""

    def __init__(
        self,
        classes: int,
        frame: tuple[int, int, int],
        features: ResidualFeatures,
        hidden: int,
        layers: int,
        rate: float,
    ) -> None:
        """Declare the layers; ``frame`` is the shape of one image."""
        super().__init__()
        self.frame = frame
        self.features = features
        sizes = [features.features, *[hidden] * (layers - 1)]
        initial = uniform(1 / math.sqrt(hidden))
        self.layers = nn.ModuleList([LongShortTermMemory(size, hidden, initial) for size in sizes])
        self.dropout = Dropout(rate)
        self.classifier = Linear(hidden, classes, gain=1.0)

    def forward(self, op: OpBuilder, x: ir.Value) -> ir.Value:
        """Add the nodes."""
        frames = op.Reshape(x, [-1, *self.frame])
        # Numbers of samples and frames are those of the input, whether known or symbolic.
        sizes = op.Concat(op.Shape(x, start=0, end=2), [self.features.features], axis=0)
        series = op.Reshape(self.features(op, frames), sizes)
        if x.shape is not None:  # which shape inference does not see through the Concat
            series.shape = ir.Shape([*x.shape[:2], self.features.features])
        y = last = op.Transpose(series, perm=[1, 0, 2])
        for layer in self.layers:
            y, last = layer(op, y)
        scores: ir.Value = self.classifier(op, self.dropout(op, last))
        return scores


def resnet_lstm(
    *,
    classes: int = 101,
    shape: Sequence[int | str] = ("time", 3, 224, 224),
    depth: int = 18,
    width: int = 64,
    hidden: int = 256,
    layers: int = 1,
    dropout: float = 0.0,
) -> nn.Module:
    """Return a classifier of videos: a residual network on every frame, LSTM layers over time.

    Source: J. Donahue et al., "Long-term recurrent convolutional networks for visual recognition and description", CVPR
    2015 (256 units), with a residual network (K. He et al., CVPR 2016) on the frames; the scores are those after the
    last frame. First weights of convolutions as in K. He et al., ICCV 2015; of the LSTM uniform in +-1/sqrt(hidden).

    Args:
        classes: Number of classes.
        shape: Shape of one sample, ``(T, C, H, W)``; the number of frames may be symbolic.
        depth: Layers of the residual network: 18, 34, 50, 101 or 152.
        width: Feature maps of its first stage.
        hidden: Size of each LSTM layer.
        layers: Number of LSTM layers.
        dropout: Share of values that is dropped before the last layer in training.

    Raises:
        InvalidInputError: The sample is no video, or another argument is not accepted.
    """
    if len(shape) != 4:
        raise InvalidInputError(f"The model resnet_lstm needs samples of shape (T, C, H, W); received {tuple(shape)}.")
    frame = check_image("resnet_lstm", shape[1:])
    size = check_count("hidden", hidden, least=1)
    count = check_count("layers", layers, least=1)
    features = ResidualFeatures(frame[0], depth, width)
    return ResNetLSTM(classes, frame, features, size, count, check_rate("dropout", dropout))
