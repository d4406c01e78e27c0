"""Resampling, one axis after the other: which elements of an axis each new one is made of, and by which weights.

Source: ONNX Resize-19.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from deep500.core.errors import InvalidNetworkError, OperatorError
from deep500.frameworks.pytorch.lowering._plain import taken
from deep500.networks.operator_node import OperatorNode

__all__ = ["Resampling", "Resize", "Settings"]

#: PyTorch's own interpolations by ONNX' mode and number of spatial dimensions.
_NATIVE = {
    ("nearest", 1): "nearest",
    ("nearest", 2): "nearest",
    ("nearest", 3): "nearest",
    ("linear", 1): "linear",
    ("linear", 2): "bilinear",
    ("linear", 3): "trilinear",
    ("cubic", 2): "bicubic",
}

#: Which element is nearest to a place.
_ROUNDINGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round_prefer_floor": lambda x: torch.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: torch.floor(x + 0.5),
}

#: More elements a place than this are summed by a matrix product instead of one by one.
_MOST_TERMS = 4


#: What the attributes may be.
_ACCEPTED = {
    "mode": ("cubic", "linear", "nearest"),
    "coordinate_transformation_mode": (
        "align_corners",
        "asymmetric",
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "tf_crop_and_resize",
    ),
    "nearest_mode": tuple(_ROUNDINGS),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The attributes of Resize, by their names in ONNX."""

    mode: str = "nearest"
    coordinate_transformation_mode: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    antialias: int = 0
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"
    axes: tuple[int, ...] | None = None

    def check(self, label: str) -> None:
        """Refuse what the specification does not accept.

        Raises:
            OperatorError: An attribute is none of the accepted ones.
        """
        for name, accepted in _ACCEPTED.items():
            if getattr(self, name) not in accepted:
                raise OperatorError(f"{label} has {getattr(self, name)!r}; accepted are {', '.join(accepted)}.")


@dataclasses.dataclass(frozen=True)
class _Axis:
    """How one axis is resized: ``size`` elements to ``new_size``, which the scale need not give exactly."""

    axis: int
    size: int
    new_size: int
    scale: float
    is_exact: bool
    start: float = 0.0
    end: float = 1.0

    @property
    def changes(self) -> bool:
        return self.scale != 1.0 or self.new_size != self.size or (self.start, self.end) != (0.0, 1.0)

    @property
    def width(self) -> float:
        """The new size, with the fraction that the scale gives it."""
        return float(self.new_size) if self.is_exact else self.scale * self.size


class Resampling(torch.nn.Module):
    """Which elements of an axis each place of the resized one is made of.

    Attributes:
        index: The elements, ``[new size, terms]``.
        weight: Their weights, ``None`` where the only one is 1; where they are many, ``[new size, old size]``.
        outside: The places that are outside the tensor and get a value of their own, ``None`` where there are none.
    """

    index: torch.Tensor
    weight: torch.Tensor | None
    outside: torch.Tensor | None

    def __init__(self, axis: _Axis, settings: Settings, device: torch.device | None = None) -> None:
        """Compute them."""
        super().__init__()
        self.axis, self.value = axis.axis, settings.extrapolation_value
        places, outside = _original(axis, settings.coordinate_transformation_mode, device)
        if settings.mode == "nearest":
            index, weight = _nearest(places, settings.nearest_mode).unsqueeze(1), None
        else:
            index, weight = _weighted(places, axis, settings)
        index = index.clamp(0, max(axis.size - 1, 0))
        if weight is not None and weight.shape[1] > _MOST_TERMS:
            weight = weight.new_zeros((index.shape[0], axis.size)).scatter_add(1, index, weight)
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("outside", outside, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Resize the axis."""
        behind = [1] * (x.dim() - self.axis - 1)
        if self.weight is None:
            y = taken(x, self.index[:, 0], self.axis)
        elif self.index.shape[1] <= _MOST_TERMS:
            weight = self.weight.to(x.dtype)
            terms = [
                x.index_select(self.axis, self.index[:, term]) * weight[:, term].reshape([-1, *behind])
                for term in range(self.index.shape[1])
            ]
            y = sum(terms[1:], terms[0])
        else:
            y = (x.movedim(self.axis, -1) @ self.weight.to(x.dtype).t()).movedim(-1, self.axis)
        if self.outside is None:
            return y
        return torch.where(self.outside.reshape([-1, *behind]), torch.tensor(self.value, dtype=y.dtype), y)


def _original(axis: _Axis, mode: str, device: torch.device | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return where each place of a resized axis was before, and which of them are outside."""
    y = torch.arange(axis.new_size, dtype=torch.float64, device=device)
    last = axis.size - 1
    if mode == "align_corners":
        return (y * last / (axis.width - 1) if axis.width != 1 else torch.zeros_like(y)), None
    if mode == "asymmetric":
        return y / axis.scale, None
    if mode == "tf_crop_and_resize":
        extent = axis.end - axis.start
        x = y * extent * last / (axis.width - 1) if axis.width != 1 else torch.full_like(y, extent * last / 2)
        x = x + axis.start * last
        return x, (x < 0) | (x > last)
    if mode == "pytorch_half_pixel" and axis.width <= 1:
        return torch.zeros_like(y), None
    # From left to right as ONNX writes it: rounded in another order, the centre may fall short of the element it is on.
    shift = axis.size / 2 * (1 - axis.new_size / axis.width) if mode == "half_pixel_symmetric" else 0.0
    return shift + (y + 0.5) / axis.scale - 0.5, None


def _nearest(x: torch.Tensor, mode: str) -> torch.Tensor:
    return _ROUNDINGS[mode](x).to(torch.int64)


def _weighted(x: torch.Tensor, axis: _Axis, settings: Settings) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the elements around each place and their weights; those outside stand for the ones at the edge."""
    # Antialiasing stretches the filter, so that it reaches every element that is left out.
    stretch = min(axis.scale, 1.0) if settings.antialias else 1.0
    reach = math.ceil((1 if settings.mode == "linear" else 2) / stretch)
    index = torch.floor(x).to(torch.int64).unsqueeze(1) + torch.arange(1 - reach, reach + 1, device=x.device)
    distance = (index - x.unsqueeze(1)).abs() * stretch
    is_linear = settings.mode == "linear"
    weight = (1 - distance).clamp(0, 1) if is_linear else _cubic(distance, settings.cubic_coeff_a)
    if settings.exclude_outside:
        weight = torch.where((index >= 0) & (index < axis.size), weight, 0.0)
    if settings.antialias or settings.exclude_outside:
        total = weight.sum(1, keepdim=True)
        weight = weight / torch.where(total == 0, 1.0, total)
    return index, weight


def _cubic(distance: torch.Tensor, a: float) -> torch.Tensor:
    """Keys' kernel. Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, equation 4."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))


class Resize(torch.nn.Module):
    """Resizes a tensor; where everything is known beforehand, with weights that are computed once."""

    def __init__(self, node: OperatorNode, settings: Settings, constants: Sequence[Any]) -> None:
        """Prepare.

        Args:
            node: The node, of whose input the shape may be known.
            settings: Its attributes.
            constants: Regions, scales and sizes as lists where they are known, else ``None``.
        """
        super().__init__()
        self.settings, self.label = settings, node.label
        self.constants = list(constants)
        self.prepared: torch.nn.ModuleList | None = None
        kind = node.input_types[0]
        sizes = None if kind is None else kind.shape
        known = [c is not None or not node.is_given(i) for i, c in enumerate(constants, 1)]
        if kind is None or sizes is None or not all(known) or not all(isinstance(n, int) for n in sizes):
            return
        plan = self._plan([n for n in sizes if isinstance(n, int)], *self.constants)
        if kind.dtype not in ("float32", "float64") or _native(len(sizes), plan, settings) is None:
            self.prepared = torch.nn.ModuleList(Resampling(axis, settings) for axis in plan)

    def forward(self, x: torch.Tensor, *parameters: torch.Tensor | None) -> torch.Tensor:
        """Resize a tensor, by regions, scales and sizes where these were not known."""
        if self.prepared is not None:
            return _resampled(x, list(self.prepared), self.settings)
        given = [c if p is None else p.tolist() for c, p in zip(self.constants, parameters)]
        plan = self._plan(list(x.shape), *given)
        native = _native(x.dim(), plan, self.settings) if x.dtype in (torch.float32, torch.float64) else None
        if native is not None:
            return F.interpolate(x, _new_shape(x, plan)[2:], **native)
        return _resampled(x, [Resampling(axis, self.settings, x.device) for axis in plan], self.settings)

    def _plan(self, shape: Sequence[int], regions: Any, scales: Any, sizes: Any) -> list[_Axis]:
        """Return the axes that change."""
        rank, settings = len(shape), self.settings
        axes = list(range(rank)) if settings.axes is None else [axis % rank for axis in settings.axes]
        regions = regions if regions and settings.coordinate_transformation_mode == "tf_crop_and_resize" else None
        plan = []
        if sizes:
            plan = _by_sizes(shape, axes, sizes, settings.keep_aspect_ratio_policy)
        elif scales:
            # ONNX' text has the region change the size, too; its shape inference and all runtimes do not.
            for axis, scale in zip(axes, scales, strict=True):
                new = shape[axis] * int(scale) if scale == int(scale) else math.floor(shape[axis] * scale)
                plan.append(_Axis(axis, shape[axis], new, scale, new == shape[axis] * scale))
        else:
            raise InvalidNetworkError(f"{self.label} has neither scales nor sizes; one of them is needed.")
        if regions:
            plan = [
                dataclasses.replace(axis, start=regions[i], end=regions[len(axes) + i]) for i, axis in enumerate(plan)
            ]
        return [axis for axis in plan if axis.changes]


def _by_sizes(shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int], policy: str) -> list[_Axis]:
    if policy == "stretch":
        # An empty axis has no scale; nothing is computed of it.
        return [_Axis(axis, shape[axis], size, size / max(shape[axis], 1), True) for axis, size in zip(axes, sizes)]
    scales = [size / shape[axis] for axis, size in zip(axes, sizes, strict=True)]
    scale = min(scales) if policy == "not_larger" else max(scales)
    news = [math.floor(scale * shape[axis] + 0.5) for axis in axes]
    return [_Axis(axis, shape[axis], new, scale, new == scale * shape[axis]) for axis, new in zip(axes, news)]


def _new_shape(x: torch.Tensor, plan: Sequence[_Axis]) -> list[int]:
    sizes = list(x.shape)
    for axis in plan:
        sizes[axis.axis] = axis.new_size
    return sizes


def _native(rank: int, plan: Sequence[_Axis], settings: Settings) -> dict[str, Any] | None:
    """Return how PyTorch's own interpolation does the same on the last axes of ``[N, C, D1, ...]``, if it does."""
    mode = _NATIVE.get((settings.mode, rank - 2))
    places = settings.coordinate_transformation_mode
    if mode is None or not plan or any(axis.axis < 2 or not axis.size or not axis.new_size for axis in plan):
        return None
    if not all(axis.is_exact for axis in plan):
        return None
    if mode == "nearest":
        # With scales that are powers of two, PyTorch's rounding of the scale's inverse does no harm.
        powers = all(axis.scale in (1.0, 2.0, 4.0, 8.0, 16.0) for axis in plan)
        rounds = settings.nearest_mode.startswith("round") and "half_pixel" in places
        floors = settings.nearest_mode == "floor" and places == "asymmetric"
        return {"mode": mode} if powers and (rounds or floors) else None
    if settings.antialias or settings.exclude_outside or (mode == "bicubic" and settings.cubic_coeff_a != -0.75):
        return None
    if places == "align_corners":
        return {"mode": mode, "align_corners": True}
    halves = places in ("half_pixel", "half_pixel_symmetric")
    halves = halves or (places == "pytorch_half_pixel" and all(axis.new_size > 1 for axis in plan))
    return {"mode": mode, "align_corners": False} if halves else None


def _resampled(x: torch.Tensor, steps: Sequence[Any], settings: Settings) -> torch.Tensor:
    """Resize axes in turn; integers are computed with as floating point, rounded and kept in their range."""
    dtype = x.dtype
    is_integer = not dtype.is_floating_point
    if settings.mode != "nearest" and dtype not in (torch.float32, torch.float64):
        x = x.to(torch.float64 if is_integer else torch.float32)
    for step in steps:
        x = step(x)
    if x.dtype == dtype:
        return x if steps else x.clone()
    if is_integer:
        limits = torch.iinfo(dtype)
        x = x.round().clamp(limits.min, limits.max)
    return x.to(dtype)
