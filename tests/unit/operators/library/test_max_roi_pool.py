"""Edge cases of the operators that pool regions; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.max_roi_pool import MaxRoiPool
from deep500.operators.library.roi_align import RoiAlign

IMAGE = np.arange(1.0, 17.0).reshape(1, 1, 4, 4)


def test_bins_overlap_and_are_cut_off() -> None:
    pool = MaxRoiPool(pooled_shape=[2, 2])

    assert pool(IMAGE, np.array([[0.0, 0, 0, 2, 2]])).tolist() == [[[[6.0, 7.0], [10.0, 11.0]]]]
    assert pool(IMAGE, np.array([[0.0, 2, 2, 9, 9]])).tolist() == [[[[16.0, 0.0], [0.0, 0.0]]]]


def test_first_of_equal_maxima_takes_the_gradient() -> None:
    x, rois = np.ones((1, 1, 2, 2)), np.array([[0.0, 0, 0, 1, 1]])
    outputs = MaxRoiPool(pooled_shape=[1, 1]).forward([x, rois])

    by_x, by_rois = MaxRoiPool(pooled_shape=[1, 1]).backward([outputs[0] * 3], [x, rois], outputs)

    assert by_x.tolist() == [[[[3.0, 0.0], [0.0, 0.0]]]]
    assert by_rois is None


def test_a_region_without_points_gives_zero() -> None:
    align = RoiAlign(output_height=1, output_width=1)
    inputs = [IMAGE, np.array([[3.0, 3.0, 1.0, 1.0]]), np.array([0])]
    outputs = align.forward(inputs)

    assert outputs[0].tolist() == [[[[0.0]]]]
    assert not align.backward([np.ones((1, 1, 1, 1))], inputs, outputs)[0].any()


def test_points_on_pixels_take_their_values() -> None:
    align = RoiAlign(output_height=2, output_width=2, sampling_ratio=1)

    assert align(IMAGE, np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([0])).tolist() == [[[[1.0, 2.0], [5.0, 6.0]]]]


def test_no_regions() -> None:
    assert MaxRoiPool(pooled_shape=[2, 3])(IMAGE, np.zeros((0, 5))).shape == (0, 1, 2, 3)
    assert RoiAlign()(IMAGE, np.zeros((0, 4)), np.zeros(0, np.int64)).shape == (0, 1, 1, 1)


def test_refusals() -> None:
    with pytest.raises(OperatorError, match="accepted are 0 to 0"):
        MaxRoiPool(pooled_shape=[1, 1]).forward([IMAGE, np.array([[1.0, 0, 0, 1, 1]])])
    with pytest.raises(OperatorError, match=r"\[R, 5\]"):
        MaxRoiPool(pooled_shape=[1, 1]).forward([IMAGE, np.zeros((1, 4))])
    with pytest.raises(OperatorError, match="two entries"):
        MaxRoiPool(pooled_shape=[1])
    with pytest.raises(OperatorError, match="accepted are int64 from 0 to 0"):
        RoiAlign().forward([IMAGE, np.zeros((1, 4)), np.array([1])])
    with pytest.raises(OperatorError, match=r"\[N, C, H, W\], \[R, 4\] and \[R\]"):
        RoiAlign().forward([IMAGE, np.zeros((1, 4)), np.zeros(2, np.int64)])
    with pytest.raises(OperatorError, match="one of avg, max"):
        RoiAlign(mode="sum")
