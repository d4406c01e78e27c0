"""Images: resizing, sampling, regions."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.frameworks.pytorch._recording import call_module, recorded
from deep500.frameworks.pytorch._sizes import as_integers, integers_of
from deep500.frameworks.pytorch.lowering import _sampling as sampling
from deep500.frameworks.pytorch.lowering import lowerings
from deep500.frameworks.pytorch.lowering._host import run_on_host
from deep500.frameworks.pytorch.lowering._resize import Resize, Settings
from deep500.networks.operator_node import OperatorNode

__all__: list[str] = []


@lowerings.register("Resize", since=19)
def resize(node: OperatorNode, x: torch.Tensor, *parameters: Any) -> Any:
    """More or fewer elements along axes, by interpolation. Source: ONNX Resize-19."""
    attributes = dict(node.attributes)
    axes = attributes.pop("axes", None)
    settings = Settings(**attributes, axes=None if axes is None else tuple(axes))
    settings.check(node.label)
    return _resized(node, settings, x, [*parameters, *[None] * (3 - len(parameters))])


@lowerings.register("Upsample", since=9)
def upsample(node: OperatorNode, x: torch.Tensor, scales: torch.Tensor) -> Any:
    """More elements along axes, by interpolation. Source: ONNX Upsample-9."""
    settings = Settings(node.attributes.get("mode", "nearest"), "asymmetric", "floor")
    return _resized(node, settings, x, [None, scales, None], {1: 2})


def _resized(
    node: OperatorNode, settings: Settings, x: Any, parameters: list[Any], positions: dict[int, int] | None = None
) -> Any:
    """Resize by regions, scales and sizes, which are the inputs 1, 2, 3 unless positions say otherwise."""
    inputs = {number: index for index, number in (positions or {1: 1, 2: 2, 3: 3}).items()}
    constants, given = [], []
    for number, value in enumerate(parameters, 1):
        constant = node.constants.get(inputs.get(number, -1))
        constants.append(None if constant is None else constant.reshape(-1).tolist())
        given.append(value if constant is None else None)
    return call_module(Resize(node, settings, constants), (x, *given))


@lowerings.register("GridSample", since=16)
def grid_sample(node: OperatorNode, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """The values of images at places between -1 and 1. Source: ONNX GridSample-22."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.attributes.get("mode", "linear"))
    mode = mode or node.attributes.get("mode", "linear")
    padding = node.attributes.get("padding_mode", "zeros")
    return sampling.grid_sample(x, grid, mode, padding, bool(node.attributes.get("align_corners", 0)))


@recorded
def _affine_grid(theta: torch.Tensor, size: Any, align: bool) -> torch.Tensor:
    return F.affine_grid(theta, as_integers(size), align)


@lowerings.register("AffineGrid", since=20)
def affine_grid(node: OperatorNode, theta: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Where an affine map sends each place of an image. Source: ONNX AffineGrid-20."""
    return _affine_grid(theta, integers_of(node, 1, size), bool(node.attributes.get("align_corners", 0)))


@lowerings.register("RoiAlign", since=16)
def roi_align(node: OperatorNode, x: torch.Tensor, regions: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """Regions of images, each sampled into bins. Source: ONNX RoiAlign-22."""
    read = node.attributes.get
    return sampling.roi_align(
        x,
        regions,
        images,
        (read("output_height", 1), read("output_width", 1)),
        read("spatial_scale", 1.0),
        read("sampling_ratio", 0),
        read("mode", "avg"),
        read("coordinate_transformation_mode", "half_pixel") == "half_pixel",
    )


@lowerings.register("NonMaxSuppression", since=11)
def non_max_suppression(
    node: OperatorNode,
    boxes: torch.Tensor,
    scores: torch.Tensor,
    most: Any = None,
    overlap: Any = None,
    least: Any = None,
) -> torch.Tensor:
    """The boxes that overlap no better one too much. Source: ONNX NonMaxSuppression-11."""
    is_centered = bool(node.attributes.get("center_point_box", 0))
    return sampling.non_max_suppression(boxes, scores, most, overlap, least, is_centered)


@lowerings.register("ImageDecoder", since=20, on_host=True)
def image_decoder(node: OperatorNode, encoded: torch.Tensor) -> Any:
    """The pixels of an image file, ``[H, W, C]``. Runs on the host. Source: ONNX ImageDecoder-20."""
    return run_on_host(node, encoded)[0]
