"""Pooling by loops over windows and their elements, straight from the formulas of the specification, in float64.

onnx.reference is wrong here for many attributes (see ``operator_cases.py``).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

Array = np.ndarray


def axis_layout(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], attributes: dict[str, Any]):
    """Return the number of windows along an axis, and the padding before and after it."""
    reach = (kernel - 1) * dilation + 1
    auto_pad = attributes.get("auto_pad", "NOTSET")
    ceil_mode = attributes.get("ceil_mode", 0)
    if auto_pad.startswith("SAME"):
        number = math.ceil(size / stride) if ceil_mode else math.floor((size - 1) / stride) + 1
        total = max(0, (number - 1) * stride + reach - size)
        before = total // 2 if auto_pad == "SAME_UPPER" else math.ceil(total / 2)
        return number, before, total - before
    if auto_pad == "VALID":
        number = math.ceil((size - reach + 1) / stride) if ceil_mode else math.floor((size - reach) / stride) + 1
        return number, 0, 0
    steps = (size + sum(pads) - dilation * (kernel - 1) - 1) / stride + 1
    number = math.ceil(steps) if ceil_mode else math.floor(steps)
    if ceil_mode and (number - 1) * stride >= size + pads[0]:
        number -= 1
    return number, *pads


def windows(x: Array, attributes: dict[str, Any]):
    """Yield, for every window, its place in the output, its elements' places in X, and how many lie in X or padding."""
    spatial = x.shape[2:]
    rank = len(spatial)
    kernel = attributes["kernel_shape"]
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    pads = attributes.get("pads", [0] * 2 * rank)
    layout = [
        axis_layout(spatial[i], kernel[i], strides[i], dilations[i], (pads[i], pads[rank + i]), attributes)
        for i in range(rank)
    ]
    for place in itertools.product(*(range(number) for number, _, _ in layout)):
        inside, padded = [], 0
        for element in itertools.product(*map(range, kernel)):
            at = [place[i] * strides[i] + element[i] * dilations[i] - layout[i][1] for i in range(rank)]
            if all(0 <= at[i] < spatial[i] for i in range(rank)):
                inside.append(tuple(at))
            padded += all(-layout[i][1] <= at[i] < spatial[i] + layout[i][2] for i in range(rank))
        yield place, inside, padded


def output_shape(x: Array, attributes: dict[str, Any]) -> tuple[int, ...]:
    last = [place for place, _, _ in windows(x, attributes)][-1]
    return (*x.shape[:2], *(i + 1 for i in last))


def max_pool(attributes: dict[str, Any], x: Array) -> tuple[Array, Array]:
    spatial = x.shape[2:]
    y, indices = np.full(output_shape(x, attributes), -np.inf), np.full(output_shape(x, attributes), -1, np.int64)
    order = "F" if attributes.get("storage_order", 0) else "C"
    for n, c in np.ndindex(x.shape[:2]):
        for place, inside, _ in windows(x, attributes):
            for at in inside:
                if indices[(n, c, *place)] < 0 or x[(n, c, *at)] > y[(n, c, *place)]:
                    y[(n, c, *place)] = x[(n, c, *at)]
                    flat = np.ravel_multi_index(at, spatial, order=order)
                    indices[(n, c, *place)] = (n * x.shape[1] + c) * np.prod(spatial) + flat
    return y.astype(x.dtype), indices


def average_pool(attributes: dict[str, Any], x: Array) -> tuple[Array]:
    y = np.zeros(output_shape(x, attributes))
    for n, c in np.ndindex(x.shape[:2]):
        for place, inside, padded in windows(x, attributes):
            count = padded if attributes.get("count_include_pad", 0) else len(inside)
            y[(n, c, *place)] = sum(float(x[(n, c, *at)]) for at in inside) / max(count, 1)
    return (y.astype(x.dtype),)


def global_max_pool(_: dict[str, Any], x: Array) -> tuple[Array]:
    y = np.array([[max(x[n, c].ravel()) for c in range(x.shape[1])] for n in range(x.shape[0])], x.dtype)
    return (y.reshape(*x.shape[:2], *[1] * (x.ndim - 2)),)
