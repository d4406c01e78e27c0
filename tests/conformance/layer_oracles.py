"""Layers by loops over elements, straight from the formulas of the specification, in float64.

onnx.reference does not have these operators, or is wrong for many attributes (see ``layer_cases.py``).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.conformance.pooling_oracle import output_shape, windows

Array = np.ndarray


def conv_transpose(attributes: dict[str, Any], x: Array, w: Array, b: Array | None = None) -> tuple[Array]:
    spatial, kernel, group = x.shape[2:], w.shape[2:], attributes.get("group", 1)
    rank, maps = len(spatial), w.shape[1]
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    extra, wanted = attributes.get("output_padding", [0] * rank), attributes.get("output_shape")
    auto_pad, pads = attributes.get("auto_pad", "NOTSET"), attributes.get("pads", [0] * 2 * rank)
    begin, size = [], []
    for i in range(rank):
        full = strides[i] * (spatial[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1
        same = auto_pad.startswith("SAME")
        if wanted is None and not same:
            before, after = (0, 0) if auto_pad == "VALID" else (pads[i], pads[rank + i])
            size.append(full - before - after)
        else:
            size.append(wanted[i] if wanted else spatial[i] * strides[i])
            total = full - size[i] if same else max(0, full - size[i])
            before = math.floor(total / 2) if auto_pad == "SAME_UPPER" else total - math.floor(total / 2)
        begin.append(before)
    y = np.zeros((x.shape[0], maps * group, *size))
    for n, c, m in np.ndindex(x.shape[0], x.shape[1], maps):
        to = c // (x.shape[1] // group) * maps + m
        for place, element in itertools.product(np.ndindex(*spatial), np.ndindex(*kernel)):
            at = [place[i] * strides[i] + element[i] * dilations[i] - begin[i] for i in range(rank)]
            if all(0 <= at[i] < size[i] for i in range(rank)):
                y[(n, to, *at)] += float(x[(n, c, *place)]) * float(w[(c, m, *element)])
    if b is not None:
        y += b.astype(np.float64).reshape(-1, *[1] * rank)
    return (y.astype(x.dtype),)


def col2im(attributes: dict[str, Any], x: Array, image_shape: Array, block_shape: Array) -> tuple[Array]:
    size, kernel = image_shape.tolist(), block_shape.tolist()
    image = np.zeros((x.shape[0], x.shape[1] // math.prod(kernel), *size))
    shape = np.zeros((1, 1, *size))
    places = [place for place, _, _ in windows(shape, {**attributes, "kernel_shape": kernel})]
    rank = len(size)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    for n, c in np.ndindex(image.shape[:2]):
        for (number, place), (row, element) in itertools.product(enumerate(places), enumerate(np.ndindex(*kernel))):
            at = [place[i] * strides[i] + element[i] * dilations[i] - pads[i] for i in range(rank)]
            if all(0 <= at[i] < size[i] for i in range(rank)):
                image[(n, c, *at)] += float(x[n, c * math.prod(kernel) + row, number])
    return (image.astype(x.dtype),)


def linear_value(image: Array, position: list[float]) -> float:
    """Return the value of an image ``[D1, ...]`` between its pixels; zeros lie outside."""
    total = 0.0
    for corner in itertools.product((0, 1), repeat=len(position)):
        at = [math.floor(p) + c for p, c in zip(position, corner, strict=True)]
        weight = math.prod(1 - abs(p - a) for p, a in zip(position, at, strict=True))
        if all(0 <= a < size for a, size in zip(at, image.shape, strict=True)):
            total += weight * float(image[tuple(at)])
    return total


def deform_conv(
    attributes: dict[str, Any], x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None
) -> tuple[Array]:
    rank, kernel, out = x.ndim - 2, w.shape[2:], offset.shape[2:]
    group, offsets = attributes.get("group", 1), attributes.get("offset_group", 1)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    moved = offset.reshape(x.shape[0], offsets, *kernel, rank, *out)
    weight = np.ones((x.shape[0], offsets, *kernel, *out)) if mask is None else None
    weight = mask.reshape(x.shape[0], offsets, *kernel, *out) if weight is None else weight
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for n, m, c in np.ndindex(x.shape[0], w.shape[0], w.shape[1]):
        channel = m // (w.shape[0] // group) * w.shape[1] + c
        g = channel // (x.shape[1] // offsets)
        for place, element in itertools.product(np.ndindex(*out), np.ndindex(*kernel)):
            at = [
                place[i] * strides[i] + element[i] * dilations[i] - pads[i] + float(moved[(n, g, *element, i, *place)])
                for i in range(rank)
            ]
            value = linear_value(x[n, channel], at) * float(weight[(n, g, *element, *place)])
            y[(n, m, *place)] += float(w[(m, c, *element)]) * value
    if b is not None:
        y += b.astype(np.float64).reshape(-1, *[1] * rank)
    return (y.astype(x.dtype),)


def lp_pool(attributes: dict[str, Any], x: Array) -> tuple[Array]:
    y, p = np.zeros(output_shape(x, attributes)), attributes.get("p", 2)
    for n, c in np.ndindex(x.shape[:2]):
        for place, inside, _ in windows(x, attributes):
            y[(n, c, *place)] = sum(abs(float(x[(n, c, *at)])) ** p for at in inside) ** (1 / p)
    return (y.astype(x.dtype),)


def global_lp_pool(attributes: dict[str, Any], x: Array) -> tuple[Array]:
    p = attributes.get("p", 2)
    y = (np.abs(x.astype(np.float64)) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
    return (y.astype(x.dtype),)


def max_roi_pool(attributes: dict[str, Any], x: Array, rois: Array) -> tuple[Array]:
    bins, scale = attributes["pooled_shape"], attributes.get("spatial_scale", 1.0)
    y = np.zeros((len(rois), x.shape[1], *bins))
    for r, c in np.ndindex(y.shape[:2]):
        edges = [math.copysign(math.floor(abs(v) + 0.5), v) for v in rois[r, 1:].astype(np.float64) * scale]
        for place in np.ndindex(*bins):
            part = []
            for axis, first, last in ((0, edges[1], edges[3]), (1, edges[0], edges[2])):
                size = max(last - first + 1, 1) / bins[axis]
                start = math.floor(place[axis] * size + 1e-9) + first
                stop = math.ceil((place[axis] + 1) * size - 1e-9) + first
                part.append(slice(*(int(min(max(v, 0), x.shape[2 + axis])) for v in (start, stop))))
            values = x[int(rois[r, 0]), c, part[0], part[1]]
            y[(r, c, *place)] = values.max() if values.size else 0
    return (y.astype(x.dtype),)


def lrn(attributes: dict[str, Any], x: Array) -> tuple[Array]:
    size, y = attributes["size"], np.empty(x.shape)
    alpha, beta, bias = (np.float32(attributes[name]) for name in ("alpha", "beta", "bias"))
    wide = x.astype(np.float64)
    for c in range(x.shape[1]):
        first, last = max(0, c - math.floor((size - 1) / 2)), min(x.shape[1] - 1, c + math.ceil((size - 1) / 2))
        squares = (wide[:, first : last + 1] ** 2).sum(axis=1)
        y[:, c] = wide[:, c] / (float(bias) + float(alpha) / size * squares) ** float(beta)
    return (y.astype(x.dtype),)


def lp_normalization(attributes: dict[str, Any], x: Array) -> tuple[Array]:
    axis, p = attributes.get("axis", -1), attributes.get("p", 2)
    norm = np.linalg.norm(x.astype(np.float64), ord=p, axis=axis, keepdims=True)
    return (np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype),)


def layer_normalization(
    attributes: dict[str, Any], x: Array, scale: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    axes = tuple(range(attributes["axis"] % x.ndim, x.ndim))
    wide = x.astype(np.float64)
    mean = wide.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(wide.var(axis=axes, keepdims=True) + float(np.float32(attributes["epsilon"])))
    y = (wide - mean) * inverse * scale + (0 if bias is None else bias)
    return y.astype(x.dtype), mean.astype(np.float32), inverse.astype(np.float32)


FUNCTIONS = {
    "Relu": lambda v, a, b: max(v, 0.0),
    "Tanh": lambda v, a, b: math.tanh(v),
    "Sigmoid": lambda v, a, b: 1 / (1 + math.exp(-v)),
    "Affine": lambda v, a, b: (1 if a is None else a) * v + (0 if b is None else b),
    "LeakyRelu": lambda v, a, b: v if v >= 0 else (0.01 if a is None else a) * v,
    "ThresholdedRelu": lambda v, a, b: v if v >= (1 if a is None else a) else 0.0,
    "ScaledTanh": lambda v, a, b: (1 if a is None else a) * math.tanh((1 if b is None else b) * v),
    "HardSigmoid": lambda v, a, b: min(max((0.2 if a is None else a) * v + (0.5 if b is None else b), 0), 1),
    "Elu": lambda v, a, b: v if v >= 0 else (1 if a is None else a) * math.expm1(v),
    "Softsign": lambda v, a, b: v / (1 + abs(v)),
    "Softplus": lambda v, a, b: math.log1p(math.exp(v)),
}
WITH_ALPHA = ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
WITH_BETA = ("Affine", "ScaledTanh", "HardSigmoid")
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def functions(operator: str, attributes: dict[str, Any], count: int) -> list[list[Any]]:
    """Return the activations of every direction, each after its limit."""
    names = attributes.get("activations") or DEFAULTS[operator] * count
    alphas, betas = (list(attributes.get(f"activation_{name}", [])) for name in ("alpha", "beta"))
    clip = attributes.get("clip")
    found = []
    for name in names:
        a = float(np.float32(alphas.pop(0))) if name in WITH_ALPHA and alphas else None
        b = float(np.float32(betas.pop(0))) if name in WITH_BETA and betas else None

        def apply(v: Array, name: str = name, a: float | None = a, b: float | None = b) -> Array:
            limited = v if clip is None else np.clip(v, -float(np.float32(clip)), float(np.float32(clip)))
            return np.array([FUNCTIONS[name](float(one), a, b) for one in limited])

        found.append(apply)
    each = len(DEFAULTS[operator])
    return [found[i * each : (i + 1) * each] for i in range(count)]


def rnn_step(act: list[Any], a: dict, x: Array, h: Array, c: Array, w: list, r: list, wb: list, rb: list, p: list):
    return act[0](w[0] @ x + r[0] @ h + wb[0] + rb[0]), c


def gru_step(act: list[Any], a: dict, x: Array, h: Array, c: Array, w: list, r: list, wb: list, rb: list, p: list):
    z, reset = (act[0](w[i] @ x + r[i] @ h + wb[i] + rb[i]) for i in (0, 1))
    if a.get("linear_before_reset", 0):
        new = act[1](w[2] @ x + reset * (r[2] @ h + rb[2]) + wb[2])
    else:
        new = act[1](w[2] @ x + r[2] @ (reset * h) + rb[2] + wb[2])
    return (1 - z) * new + z * h, c


def lstm_step(act: list[Any], a: dict, x: Array, h: Array, c: Array, w: list, r: list, wb: list, rb: list, p: list):
    sums = [w[i] @ x + r[i] @ h + wb[i] + rb[i] for i in range(4)]
    i = act[0](sums[0] + p[0] * c)
    f = 1 - i if a.get("input_forget", 0) else act[0](sums[2] + p[2] * c)
    new = f * c + i * act[1](sums[3])
    return act[0](sums[1] + p[1] * new) * act[2](new), new


STEPS = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


def recurrent(operator: str, attributes: dict[str, Any], *inputs: Array | None) -> tuple[Array, ...]:
    """Run every sequence by itself, step by step, one direction after the other."""
    given = [*inputs, *[None] * (8 - len(inputs))]
    x, w, r, b, lengths, h0, c0, p = (None if t is None else t.astype(np.float64) for t in given)
    if attributes.get("layout", 0):
        x, h0, c0 = (None if t is None else t.swapaxes(0, 1) for t in (x, h0, c0))
    steps, batch, count, size, gates = *x.shape[:2], w.shape[0], r.shape[2], GATES[operator]
    y = np.zeros((steps, count, batch, size))
    last_h, last_c = np.zeros((count, batch, size)), np.zeros((count, batch, size))
    for d, act in enumerate(functions(operator, attributes, count)):
        backward = attributes.get("direction") == "reverse" or d == 1
        biases = np.zeros(2 * gates * size) if b is None else b[d]
        parts = [np.split(w[d], gates), np.split(r[d], gates), *(np.split(half, gates) for half in np.split(biases, 2))]
        peepholes = np.split(np.zeros(3 * size) if p is None else p[d], 3)
        for n in range(batch):
            h = np.zeros(size) if h0 is None else h0[d, n]
            c = np.zeros(size) if c0 is None else c0[d, n]
            order = list(range(steps if lengths is None else int(lengths[n])))
            for t in reversed(order) if backward else order:
                h, c = STEPS[operator](act, attributes, x[t, n], h, c, *parts, peepholes)
                y[t, d, n] = h
            last_h[d, n], last_c[d, n] = h, c
    if attributes.get("layout", 0):
        y, last_h, last_c = y.transpose(2, 0, 1, 3), last_h.swapaxes(0, 1), last_c.swapaxes(0, 1)
    outputs = (y, last_h, last_c) if operator == "LSTM" else (y, last_h)
    return tuple(t.astype(inputs[0].dtype) for t in outputs)
