"""Sample cases for the layers of the library: convolutions, pooling, normalisation, recurrence, signals.

They are like those of ``operator_cases.py``. ``LAYER_CASES`` holds them, and those of ``image_cases.py``, by
file of the operator.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.conformance import layer_oracles as oracles
from tests.conformance.image_cases import IMAGE_CASES, off_pixels
from tests.conformance.operator_cases import Array, Case, Draw, draw_windows, flags, positive, seeds, sizes, spread


@st.composite
def conv_transpose(draw: Draw) -> Case:
    rank = draw(st.integers(1, 3))
    each = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    spatial, kernel, strides, dilations = (
        each(1, 3 if rank < 3 else 2),
        each(1, 3 if rank < 3 else 2),
        each(1, 3),
        each(1, 2),
    )
    attributes: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": draw(st.integers(1, 2))}
    full = [s * (n - 1) + (k - 1) * d + 1 for s, n, k, d in zip(strides, spatial, kernel, dilations, strict=True)]
    kind = draw(st.sampled_from(["pads", "plain", "SAME_UPPER", "SAME_LOWER", "VALID", "shape", "shape_upper"]))
    if kind == "pads":
        begin = [draw(st.integers(0, min(2, n - 1))) for n in full]
        attributes["pads"] = begin + [draw(st.integers(0, min(2, n - 1 - b))) for n, b in zip(full, begin, strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if kind.startswith("SAME") and any(r < s for r, s in zip(reach, strides, strict=True)):
        kind = "VALID"  # ONNX' shape inference does not widen the output to what the specification says here
    if kind.startswith(("SAME", "VALID")):
        attributes["auto_pad"] = kind
    if kind.startswith("shape"):
        # ONNX' shape inference gives up where an axis becomes shorter.
        longer = [n + draw(st.integers(-2, 2)) for n in full]
        attributes["output_shape"] = [max(n, size) for n, size in zip(longer, spatial, strict=True)]
        if kind == "shape_upper":
            attributes["auto_pad"] = "SAME_UPPER"
    # With SAME, ONNX' shape inference adds the output padding to the size that the specification gives.
    if not kind.startswith("SAME") and draw(st.booleans()):
        attributes["output_padding"] = [draw(st.integers(0, s - 1)) for s in strides]
    if draw(st.booleans()):
        attributes["kernel_shape"] = kernel
    channels, maps = attributes["group"] * draw(st.integers(1, 2)), draw(st.integers(1, 2))
    rng = draw(seeds)
    x = rng.standard_normal((draw(st.integers(1, 2)), channels, *spatial))
    inputs = [x, rng.standard_normal((channels, maps, *kernel))]
    if draw(st.booleans()):
        inputs.append(rng.standard_normal(maps * attributes["group"]))
    # onnx.reference is wrong for groups of several maps, and for output_shape without auto_pad.
    return Case(attributes, inputs, oracle=oracles.conv_transpose)


@st.composite
def col2im(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=False)
    attributes.pop("auto_pad")
    kernel = attributes.pop("kernel_shape")
    rank = len(kernel)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    blocks = [
        (spatial[i] + pads[i] + pads[rank + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(rank)
    ]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)) * int(np.prod(kernel)), int(np.prod(blocks)))
    x = draw(seeds).standard_normal(shape)
    # onnx.reference takes a batch for channels where the image has another rank than 2.
    return Case(attributes, [x, np.array(spatial), np.array(kernel)], oracle=oracles.col2im)


@st.composite
def deform_conv(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=False)
    attributes.pop("auto_pad")
    kernel = attributes["kernel_shape"]
    rank = len(kernel)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    out = [
        min(2, (spatial[i] + pads[i] + pads[rank + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1)
        for i in range(rank)
    ]
    # As many windows as the case needs, and not more: the oracle is slow.
    spatial = tuple(
        (out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[rank + i] for i in range(rank)
    )
    if min(spatial) < 1:
        attributes.pop("pads", None)
        spatial = tuple((out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank))
    group, offsets = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    attributes |= {"group": group, "offset_group": offsets}
    channels, maps = group * offsets, group * draw(st.integers(1, 2))
    rng, elements = draw(seeds), int(np.prod(kernel))
    inputs: list[Array | None] = [
        rng.standard_normal((1, channels, *spatial)),
        rng.standard_normal((maps, channels // group, *kernel)),
        off_pixels(rng, (1, offsets * elements * rank, *out), 2),
    ]
    bias = rng.standard_normal(maps) if draw(st.booleans()) else None
    if draw(st.booleans()):
        inputs += [bias, rng.uniform(0.2, 1.5, (1, offsets * elements, *out))]
    elif bias is not None:
        inputs.append(bias)
    # onnx.reference has two spatial axes only, and divides by zero where one has a single element.
    return Case(attributes, inputs, oracle=oracles.deform_conv)


@st.composite
def lp_pooling(draw: Draw) -> Case:
    attributes, spatial = draw_windows(draw, ceil=True)
    attributes["p"] = draw(st.integers(1, 3))
    x = spread(draw(seeds), (draw(sizes), draw(st.integers(1, 2)), *spatial))
    # onnx.reference divides by the number of elements in X and multiplies by that of the window.
    return Case(attributes, [x], oracle=oracles.lp_pool)


@st.composite
def global_lp_pooling(draw: Draw) -> Case:
    shape = (draw(sizes), draw(sizes), *draw(st.lists(sizes, min_size=1, max_size=3)))
    return Case({"p": draw(st.integers(1, 3))}, [spread(draw(seeds), shape)], oracle=oracles.global_lp_pool)


@st.composite
def max_unpool(draw: Draw) -> Case:
    rank = draw(st.integers(1, 3))
    each = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    kernel, strides, pooled = each(1, 3), each(1, 2), each(1, 2)
    attributes = {"kernel_shape": kernel, "strides": strides}
    inner = [(o - 1) * s + k for o, s, k in zip(pooled, strides, kernel, strict=True)]
    rng, lead = draw(seeds), (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    count = int(np.prod([*lead, *pooled]))
    places = rng.choice(int(np.prod([*lead, *inner])), count, replace=False).reshape(*lead, *pooled)
    inputs = [spread(rng, (*lead, *pooled)), places]
    if draw(st.booleans()):
        inputs.append(np.array([*lead, *(n + draw(st.integers(0, 2)) for n in inner)]))
    return Case(attributes, inputs)


@st.composite
def max_roi_pooling(draw: Draw) -> Case:
    attributes = {"pooled_shape": [draw(sizes), draw(sizes)], "spatial_scale": draw(st.sampled_from([1.0, 0.5]))}
    rng = draw(seeds)
    shape = (draw(sizes), draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    regions = draw(st.integers(0, 3))
    corners = np.sort(rng.integers(-2, 9, (regions, 2, 2)) + 0.25, axis=1).reshape(regions, 4)
    rois = np.concatenate([rng.integers(0, shape[0], (regions, 1)).astype(np.float64), corners], axis=1)
    return Case(attributes, [spread(rng, shape), rois], skip_inputs=(1,), oracle=oracles.max_roi_pool)


@st.composite
def instance_normalization(draw: Draw) -> Case:
    shape = (draw(sizes), draw(sizes), draw(st.integers(3, 4)), *draw(st.lists(sizes, max_size=2)))
    rng = draw(seeds)
    inputs = [spread(rng, shape), *(rng.uniform(0.5, 2.0, shape[1]) for _ in range(2))]
    return Case({"epsilon": draw(st.sampled_from([1e-5, 0.1]))}, inputs)


@st.composite
def layer_normalization(draw: Draw) -> Case:
    shape = (*draw(st.lists(sizes, max_size=2)), 3)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    scaled = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in shape[axis:])
    rng = draw(seeds)
    inputs = [spread(rng, shape), positive(rng, scaled)]
    if draw(st.booleans()):
        inputs.append(spread(rng, scaled))
    attributes = {"axis": axis, "epsilon": draw(st.sampled_from([1e-5, 0.1]))}
    # onnx.reference gives the statistics in the input's dtype, whatever stash_type says.
    return Case(attributes, inputs, skip_outputs=(1, 2), outputs=3, oracle=oracles.layer_normalization)


@st.composite
def lrn(draw: Draw) -> Case:
    attributes = {"size": draw(st.integers(1, 6)), "alpha": 0.5, "beta": 0.75, "bias": 1.5}
    shape = (draw(sizes), draw(st.integers(1, 5)), *draw(st.lists(sizes, max_size=2)))
    # onnx.reference counts channels up to the size of the batch.
    return Case(attributes, [draw(seeds).standard_normal(shape)], oracle=oracles.lrn)


@st.composite
def lp_normalization(draw: Draw) -> Case:
    shape = draw(st.lists(sizes, min_size=1, max_size=3))
    attributes = {"axis": draw(st.integers(-len(shape), len(shape) - 1)), "p": draw(st.integers(1, 2))}
    # onnx.reference adds up signed values for p = 1.
    return Case(attributes, [spread(draw(seeds), tuple(shape))], oracle=oracles.lp_normalization)


@st.composite
def dropout(draw: Draw) -> Case:
    x = draw(seeds).standard_normal(draw(st.lists(sizes, max_size=3)))
    inputs: list[Array | None] = [x]
    if draw(st.booleans()):
        # Nothing is dropped: which elements are is drawn at random, and not the same in every framework.
        trains = draw(st.booleans())
        inputs = [x, np.array(0.0 if trains else 0.25), np.array(trains)]
    return Case({"seed": draw(st.integers(0, 9))}, inputs, skip_inputs=(1,), outputs=2)


@st.composite
def recurrent(draw: Draw, operator: str) -> Case:
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count, gates = 2 if direction == "bidirectional" else 1, oracles.GATES[operator]
    attributes: dict[str, Any] = {"direction": direction, "layout": draw(flags)}
    steps, batch, size, hidden = draw(sizes), draw(sizes), draw(sizes), draw(st.integers(1, 2))
    if draw(st.booleans()):
        attributes["hidden_size"] = hidden
    if draw(st.booleans()):
        smooth = [
            "Tanh",
            "Sigmoid",
            "Affine",
            "LeakyRelu",
            "ScaledTanh",
            "HardSigmoid",
            "Elu",
            "Softsign",
            "Softplus",
            "Relu",
        ]
        names = [draw(st.sampled_from(smooth)) for _ in range(len(oracles.DEFAULTS[operator]) * count)]
        attributes["activations"] = names
        for key, having in (("activation_alpha", oracles.WITH_ALPHA), ("activation_beta", oracles.WITH_BETA)):
            number = sum(name in having for name in names)
            if number and draw(st.booleans()):
                attributes[key] = [draw(st.sampled_from([0.25, 0.5, 0.75])) for _ in range(number)]
    if draw(st.integers(0, 3)) == 0:
        attributes["clip"] = 0.5
    if operator == "GRU":
        attributes["linear_before_reset"] = draw(flags)
    if operator == "LSTM":
        attributes["input_forget"] = draw(flags)
    rng = draw(seeds)
    x, state = (steps, batch, size), (count, batch, hidden)
    if attributes["layout"]:
        x, state = (batch, steps, size), (batch, count, hidden)
    make = lambda *shape: rng.normal(scale=0.6, size=shape)  # noqa: E731
    maybe = lambda *shape: make(*shape) if draw(st.booleans()) else None  # noqa: E731
    inputs = [make(*x), make(count, gates * hidden, size), make(count, gates * hidden, hidden)]
    inputs.append(maybe(count, 2 * gates * hidden))
    inputs.append(rng.integers(0, steps + 1, batch).astype(np.int32) if draw(st.booleans()) else None)
    inputs.append(maybe(*state))
    if operator == "LSTM":
        inputs += [maybe(*state), maybe(count, 3 * hidden)]
    while inputs[-1] is None:
        inputs.pop()
    # onnx.reference has no sequence_lens, no clip, no input_forget and, but for RNN, no other activations.
    oracle = functools.partial(oracles.recurrent, operator)
    return Case(attributes, inputs, outputs=3 if operator == "LSTM" else 2, oracle=oracle)


@st.composite
def dft(draw: Draw) -> Case:
    attributes = {"inverse": draw(flags), "onesided": draw(flags)}
    parts = draw(st.integers(1, 2))
    if attributes["onesided"]:
        parts = 2 if attributes["inverse"] else 1
    shape = [*draw(st.lists(st.integers(2, 4), min_size=1, max_size=2)), parts]
    axis = draw(st.integers(0, len(shape) - 2))
    inputs: list[Array | None] = [draw(seeds).standard_normal(shape)]
    length = np.array(draw(st.integers(1, 6))) if draw(st.booleans()) else None
    if draw(st.booleans()):
        inputs += [length, np.array(axis - len(shape) if draw(st.booleans()) else axis)]
    elif length is not None:
        inputs.append(length)
    return Case(attributes, inputs)


@st.composite
def stft(draw: Draw) -> Case:
    attributes = {"onesided": draw(flags)}
    parts = 1 if attributes["onesided"] else draw(st.integers(1, 2))
    length, frame = draw(st.integers(3, 7)), draw(st.integers(1, 3))
    rng = draw(seeds)
    inputs: list[Array | None] = [rng.standard_normal((draw(sizes), length, parts)), np.array(draw(sizes))]
    kind = draw(st.sampled_from(["window", "length", "both"]))
    inputs.append(positive(rng, (frame,)) if kind != "length" else None)
    if kind != "window":
        inputs.append(np.array(frame))
    return Case(attributes, inputs)


LAYER_CASES: dict[str, st.SearchStrategy[Case]] = {
    **IMAGE_CASES,
    "col2im": col2im(),
    "conv_transpose": conv_transpose(),
    "deform_conv": deform_conv(),
    "dft": dft(),
    "dropout": dropout(),
    "global_lp_pool": global_lp_pooling(),
    "gru": recurrent("GRU"),
    "instance_normalization": instance_normalization(),
    "layer_normalization": layer_normalization(),
    "lp_normalization": lp_normalization(),
    "lp_pool": lp_pooling(),
    "lrn": lrn(),
    "lstm": recurrent("LSTM"),
    "max_roi_pool": max_roi_pooling(),
    "max_unpool": max_unpool(),
    "rnn": recurrent("RNN"),
    "stft": stft(),
}
