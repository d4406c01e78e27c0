"""What the strategies draw from: shapes, axes, and values away from kinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.conformance.onnx_gradients.cases import Array, Draw, GradientCase
from tests.conformance.operator_cases import flags, positive, seeds, shapes, sizes, spread

__all__ = [
    "Values", "distinct", "draw_axis", "draw_broadcast", "draw_shape", "flags", "in_float32", "int64", "normal",
    "positive", "seeds", "shapes", "sizes", "spread", "unary", "within",
]  # fmt: skip

Values = Callable[[np.random.Generator, tuple[int, ...]], Array]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return normally distributed values."""
    return rng.standard_normal(shape)


def within(low: float, high: float) -> Values:
    """Return a function that draws values of an interval."""
    return lambda rng, shape: rng.uniform(low, high, shape)


def int64(values: Any) -> Array:
    """Return integers as ONNX has them."""
    return np.array(values, np.int64)


def unary(operator: str, values: Values = spread, **attributes: st.SearchStrategy[Any]) -> st.SearchStrategy:
    """Return a strategy for an operator of one tensor of any shape."""

    @st.composite
    def cases(draw: Draw) -> GradientCase:
        drawn = {name: draw(value) for name, value in attributes.items()}
        return GradientCase(operator, [values(draw(seeds), draw(shapes))], drawn)

    return cases()


def draw_shape(draw: Draw, *, least: int = 1, most: int = 3, size: int = 3) -> tuple[int, ...]:
    """Draw a shape of some rank without empty axes."""
    return tuple(draw(st.lists(st.integers(1, size), min_size=least, max_size=most)))


def draw_axis(draw: Draw, rank: int) -> int:
    """Draw an axis, counted from the front or from the back."""
    return draw(st.integers(-rank, rank - 1))


def draw_broadcast(draw: Draw, count: int) -> list[tuple[int, ...]]:
    """Draw shapes that broadcast to one."""
    whole = draw(shapes)
    found = []
    for _ in range(count):
        shape = [1 if draw(st.integers(0, 2)) == 0 else size for size in whole]
        found.append(tuple(shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape))
    return found


def distinct(rng: np.random.Generator, shapes_of: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return tensors whose elements all differ from one another by much more than a step."""
    count = sum(int(np.prod(shape)) for shape in shapes_of)
    values = spread(rng, (count,))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes_of])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(values, ends), shapes_of, strict=True)]


def in_float32(case: GradientCase) -> GradientCase:
    """Return a case of an operator that has no float64 form in float32; its outputs are converted for the loss."""
    inputs = [x.astype(np.float32) if x is not None and x.dtype == np.float64 else x for x in case.inputs]
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    own = [f"narrow{i}" for i in range(case.outputs)]
    node = onnx.helper.make_node(case.operator, names, own, name="node", domain=case.domain, **case.attributes)
    casts = [
        onnx.helper.make_node("Cast", [name], [f"y{i}"], name=f"cast{i}", to=onnx.TensorProto.DOUBLE)
        for i, name in enumerate(own)
    ]
    return replace(case, inputs=inputs, nodes=(node, *casts))
