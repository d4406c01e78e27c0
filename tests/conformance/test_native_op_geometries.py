"""Native operators over windows and matrices of random sizes, against the operator library in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.native_op_cases import Case, compile_all, conv2d, gemm, maxpool2d

many = settings(max_examples=60, suppress_health_check=list(HealthCheck))

seeds = st.integers(0, 2**16).map(np.random.default_rng)
pairs = lambda low, high: st.tuples(st.integers(low, high), st.integers(low, high))  # noqa: E731


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_all()


def check(case: Case) -> None:
    inputs, grads = case.cast(np.float64), case.gradients(np.float64)
    outputs = case.op.run_forward(inputs)

    case.check(inputs, grads, outputs, case.op.run_backward(grads, inputs, outputs))


@st.composite
def windows(draw: Any, *, most_pad: int) -> tuple[dict[str, Any], tuple[int, int], tuple[int, int]]:
    """Draw attributes, a kernel, and the size of an image into which one fits."""
    kernel, dilations = draw(pairs(1, 4)), draw(pairs(1, 3))
    pads = tuple(draw(st.integers(0, most_pad)) for _ in range(4))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    more = draw(pairs(0, 9))
    size = tuple(max(1, reach[i] + more[i] - pads[i] - pads[2 + i]) for i in range(2))
    return {"strides": draw(pairs(1, 4)), "pads": pads, "dilations": dilations}, kernel, size


@many
@given(
    drawn=windows(most_pad=4), images=st.integers(0, 3), groups=st.integers(1, 3),
    channels=st.integers(1, 5), maps=st.integers(1, 19), has_bias=st.booleans(), stream=seeds,
)  # fmt: skip
def test_conv2d(
    drawn: Any, images: int, groups: int, channels: int, maps: int, has_bias: bool, stream: np.random.Generator
) -> None:
    attributes, kernel, size = drawn
    x = stream.standard_normal((images, channels * groups, *size))
    weight = stream.standard_normal((maps * groups, channels, *kernel))
    bias = stream.standard_normal(maps * groups) if has_bias else None

    check(conv2d([x, weight, bias], groups=groups, **attributes))


@many
@given(
    drawn=windows(most_pad=5), images=st.integers(0, 3), channels=st.integers(0, 3), ceil_mode=st.integers(0, 1),
    stream=seeds,
)  # fmt: skip
def test_maxpool2d(drawn: Any, images: int, channels: int, ceil_mode: int, stream: np.random.Generator) -> None:
    attributes, kernel, size = drawn
    x = stream.permutation(np.arange(images * channels * size[0] * size[1], dtype=np.float64))

    check(maxpool2d(x.reshape(images, channels, *size), kernel_shape=kernel, ceil_mode=ceil_mode, **attributes))


@many
@given(
    m=st.integers(0, 40), n=st.integers(0, 70), k=st.integers(0, 40), trans=pairs(0, 1),
    factors=st.tuples(*[st.sampled_from([1.0, 0.0, -0.5, 3.0])] * 2), c=st.integers(0, 6), stream=seeds,
)  # fmt: skip
def test_gemm(
    m: int, n: int, k: int, trans: tuple[int, int], factors: tuple[float, float], c: int, stream: np.random.Generator
) -> None:
    shape = [None, (), (1,), (n,), (1, n), (m, 1), (m, n)][c]
    a = stream.standard_normal((k, m) if trans[0] else (m, k))
    b = stream.standard_normal((n, k) if trans[1] else (k, n))

    check(gemm([a, b, None if shape is None else np.asarray(stream.standard_normal(shape))], *factors, *trans))
