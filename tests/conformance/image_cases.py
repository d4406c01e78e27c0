"""Sample cases for the operators of the library that sample images, like those of ``operator_cases.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.conformance.operator_cases import Array, Case, Draw, flags, seeds, sizes, spread


def off_pixels(rng: np.random.Generator, shape: tuple[int, ...], reach: int) -> Array:
    """Return numbers that differ by at least 0.1 from whole numbers and their halves, where derivatives jump."""
    return rng.integers(-reach, reach, shape) + rng.choice([0.1, 0.6], shape) + rng.uniform(0, 0.3, shape)


@st.composite
def resize(draw: Draw) -> Case:
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    attributes: dict[str, Any] = {"mode": mode}
    transformations = ["half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric", "tf_crop_and_resize"]
    # onnx.reference has the only element of an axis at -0.5 in "pytorch_half_pixel", where the specification says 0.
    transformation = draw(
        st.sampled_from(transformations if mode == "cubic" else [*transformations, "pytorch_half_pixel"])
    )
    attributes["coordinate_transformation_mode"] = transformation
    if mode == "nearest":
        roundings = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = draw(st.sampled_from(roundings))
    else:
        attributes["exclude_outside"], attributes["antialias"] = draw(flags), draw(flags)
    if mode == "cubic":
        attributes["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5]))
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    count = len(shape)
    if draw(st.booleans()):
        count = draw(st.integers(1, len(shape)))
        attributes["axes"] = list(draw(st.permutations(range(len(shape)))))[:count]
    rng = draw(seeds)
    roi = None
    if transformation == "tf_crop_and_resize":
        attributes["extrapolation_value"] = 1.5
        # onnx.reference subtracts in float32: numbers of which the differences are exact.
        roi = (np.concatenate([rng.integers(-3, 7, count), rng.integers(9, 20, count)]) / 16).astype(np.float32)
    inputs: list[Array | None] = [rng.standard_normal(shape), roi]
    if draw(st.booleans()):
        old = [shape[a] for a in attributes.get("axes", range(count))]
        low = [1 / n for n in old]
        scales = [
            draw(st.sampled_from([s for s in (0.3, 0.5, 0.6, 1.0, 1.5, 2.0, 2.4) if s >= least])) for least in low
        ]
        inputs.append(np.array(scales, np.float32))
    else:
        inputs += [None, np.array([draw(st.integers(1, 6)) for _ in range(count)])]
        policies = ["stretch", "not_larger", "not_smaller"]
        attributes["keep_aspect_ratio_policy"] = draw(st.sampled_from(policies))
        if attributes["keep_aspect_ratio_policy"] != "stretch":
            inputs[-1] = np.maximum(inputs[-1], max(shape))  # else an axis may become empty
    # onnx.reference has cubic weights in float32.
    dtypes = (np.float32,) if mode == "cubic" else (np.float32, np.float64)
    return Case(attributes, inputs, skip_inputs=(1, 2), dtypes=dtypes)


@st.composite
def grid_sample(draw: Draw) -> Case:
    attributes = {
        "mode": draw(st.sampled_from(["linear", "nearest", "cubic"])),
        "padding_mode": draw(st.sampled_from(["zeros", "border", "reflection"])),
        "align_corners": draw(flags),
    }
    rank = draw(st.integers(1, 2 if attributes["mode"] == "cubic" else 3))
    # onnx.reference divides by zero where reflections by the only pixel of an axis are asked for.
    least = 2 if attributes["align_corners"] else 1
    spatial = [draw(st.integers(least, 4 if rank < 3 else 3)) for _ in range(rank)]
    rng, batch = draw(seeds), draw(st.integers(1, 2))
    out = draw(st.lists(st.integers(1, 3 if rank < 3 else 2), min_size=rank, max_size=rank))
    pixels = off_pixels(rng, (batch, *out, rank), 3) + np.array(spatial[::-1]) // 2
    lengths = np.array(spatial[::-1])
    grid = pixels / (lengths - 1) * 2 - 1 if attributes["align_corners"] else (2 * pixels + 1) / lengths - 1
    x = rng.standard_normal((batch, draw(st.integers(1, 2)), *spatial))
    # onnx.reference has positions in float32.
    return Case(attributes, [x, grid], dtypes=(np.float32,))


@st.composite
def roi_align(draw: Draw) -> Case:
    attributes = {
        "mode": draw(st.sampled_from(["avg", "max"])),
        "coordinate_transformation_mode": draw(st.sampled_from(["half_pixel", "output_half_pixel"])),
        "output_height": draw(sizes),
        "output_width": draw(sizes),
        "sampling_ratio": draw(st.integers(0, 2)),
        "spatial_scale": draw(st.sampled_from([1.0, 0.5])),
    }
    rng = draw(seeds)
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    regions = draw(st.integers(0, 3))
    corners = np.sort(rng.integers(-3, 12, (regions, 2, 2)) + np.array([[0.125], [0.375]]), axis=1)
    images = rng.integers(0, shape[0], regions)
    return Case(attributes, [spread(rng, shape), corners.reshape(regions, 4), images], skip_inputs=(1,))


@st.composite
def affine_grid(draw: Draw) -> Case:
    rng, batch, rank = draw(seeds), draw(sizes), draw(st.integers(2, 3))
    size = np.array([batch, draw(sizes), *(draw(st.integers(2, 3)) for _ in range(rank))])
    # onnx.reference computes in float32.
    inputs = [rng.standard_normal((batch, rank, rank + 1)), size]
    return Case({"align_corners": draw(flags)}, inputs, dtypes=(np.float32,))


IMAGE_CASES: dict[str, st.SearchStrategy[Case]] = {
    "affine_grid": affine_grid(),
    "grid_sample": grid_sample(),
    "resize": resize(),
    "roi_align": roi_align(),
}
