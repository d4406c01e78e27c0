from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deep500.core.errors import FileWriteError, InvalidInputError
from deep500.measure.metrics import _heatmaps
from deep500.measure.metrics._heatmaps import HeatmapMetric, as_grid, heatmap_figure

values = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=7),
    elements=st.floats(0, 1e9) | st.just(math.nan) | st.just(math.inf),
)


class Given(HeatmapMetric):
    colours = "given"

    def measure(self, inputs: Any, outputs: Any, reference_outputs: Any = None) -> float:
        return self.finish(outputs)


def panels(figure: Any) -> list[Any]:
    return [axis for axis in figure.axes if axis.images and axis.get_title()]


@given(values)
def test_no_element_is_lost_or_added(array: np.ndarray[Any, Any]) -> None:
    grid = as_grid(array)
    inside = grid.values[~grid.outside]

    assert grid.values.ndim == 2
    if array.ndim < 2:
        np.testing.assert_array_equal(inside, array.ravel())
        rows, columns = grid.values.shape
        assert 0 <= columns - rows <= 1 or array.size < 3
    else:
        with np.errstate(invalid="ignore"):
            expected = array.reshape(-1, *array.shape[-2:]).mean(axis=0)
        np.testing.assert_array_equal(np.isnan(grid.values), np.isnan(expected))
        np.testing.assert_allclose(grid.values, expected, rtol=1e-12)
        assert not grid.outside.any()


def test_cells_say_what_they_are() -> None:
    assert as_grid(np.zeros((3, 4))).how == ""
    assert as_grid(np.zeros((2, 5, 3, 4))).how == "mean over 2 × 5"
    assert as_grid(np.zeros(10)).how == "rows of 4"
    assert as_grid(np.zeros(())).values.shape == (1, 1)
    empty = as_grid(np.zeros((0, 3)))
    assert (empty.how, empty.outside.all()) == ("no elements", True)


@pytest.mark.parametrize("shape", [(1300, 700), (513, 2), (2, 5, 513), (600_001,)])
def test_single_element_of_a_large_output_is_seen(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape)
    place = tuple(size - 2 for size in shape)
    array[place] = 7.0
    grid = as_grid(array)

    assert max(grid.values.shape) <= 512
    assert grid.values.max() == (7.0 / shape[0] if len(shape) == 3 else 7.0)
    assert not grid.outside[np.unravel_index(grid.values.argmax(), grid.values.shape)]
    assert "largest of" in grid.how
    array[place] = math.nan
    assert np.isnan(as_grid(array).values).sum() == 1


def test_panel_shows_values_scale_and_what_is_not_finite() -> None:
    array = np.array([[0.0, 2.0], [math.nan, math.inf]])
    figure = heatmap_figure({"output 'y'": array}, "|a − b|", log_scale=False)
    [panel] = panels(figure)
    [image] = panel.images

    assert panel.get_title() == "output 'y'\nlargest nan, 2 NaN or infinite: magenta"
    np.testing.assert_array_equal(np.ma.getmaskarray(image.get_array()), [[False, False], [True, True]])
    np.testing.assert_allclose(image.cmap(np.ma.masked), mpl.colors.to_rgba("magenta"))
    assert (image.norm.vmin, image.norm.vmax) == (0.0, 2.0)
    assert image.colorbar.ax.get_ylabel() == "|a − b|"


def test_logarithmic_scale_shows_zero_as_less_and_not_as_nan() -> None:
    array = np.array([[0.0, 1e-30, 1e-3], [1.0, 10.0, math.nan]])
    figure = heatmap_figure({"y": array}, "", log_scale=True)
    [image] = panels(figure)[0].images
    drawn = image.get_array()

    assert isinstance(image.norm, mpl.colors.LogNorm)
    assert (image.norm.vmin, image.norm.vmax) == (10.0 / 1e16, 10.0)
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), [[False] * 3, [False, False, True]])
    np.testing.assert_allclose(image.to_rgba(drawn)[0, :2], [mpl.colors.to_rgba("black")] * 2)
    assert drawn[1, 1] == 10.0
    assert image.colorbar.extend == "min"


@pytest.mark.parametrize("log_scale", [False, True])
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-310, 1e-5, 3.0, 1e308, sys.float_info.max, math.nan, math.inf])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.filterwarnings("error")
def test_any_value_can_be_drawn(tmp_path: Path, log_scale: bool, value: float, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    found = Given(path, log_scale=log_scale).measure(None, {"y": np.full((2, 3), value)})

    assert found == value or math.isnan(value)
    assert path.read_bytes().startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")


def test_outputs_with_the_largest_values_are_drawn_of_many() -> None:
    outputs = {f"output {index}": np.full((1, 1), float(index)) for index in range(20)}
    outputs["output 3"][0, 0] = math.nan
    figure = heatmap_figure(outputs, "", log_scale=False)
    names = [panel.get_title().partition("\n")[0] for panel in panels(figure)]

    assert names == ["output 3", *(f"output {index}" for index in range(9, 20))]
    assert figure.get_suptitle() == "12 of 20 outputs, those with the largest values"
    assert heatmap_figure({}, "", log_scale=False).get_suptitle() == ""


def test_names_are_shown_as_they_are_on_one_line() -> None:
    figure = heatmap_figure({"$\\frac$\n<b>" + "x" * 99: np.ones((1, 1))}, "", log_scale=False)
    [panel] = panels(figure)

    assert panel.get_title().count("\n") == 1
    assert panel.get_title().startswith("$\\frac$\\n<b>x")
    assert not panel.title.get_parse_math()


def test_same_values_give_the_same_bytes_whatever_the_settings(tmp_path: Path) -> None:
    outputs = {"y": np.arange(6.0).reshape(2, 3)}
    for suffix in (".png", ".svg"):
        first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
        Given(first).measure(None, outputs)
        with mpl.rc_context({"image.interpolation": "bilinear", "font.size": 30.0, "savefig.dpi": 10}):
            Given(str(second)).measure(None, outputs)
            assert mpl.rcParams["font.size"] == 30.0
        assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.png", "1.svg", "2.png", "2.svg"]


def test_no_window_system_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    Given(tmp_path / "y.png").measure(None, {"y": np.ones((2, 2))})

    assert "matplotlib.pyplot" not in sys.modules


def test_no_path_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_heatmaps, "heatmap_figure", None)
    metric = Given()
    metric.begin()

    assert metric.measure_summary(None, {"y": np.array([1.0, 2.0]), "z": np.zeros(0)}) == "2"


def test_summary_names_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "y.png"

    assert Given(path).measure_summary(None, {"y": np.ones(3)}) == f"1 (picture: {path})"


def test_picture_that_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    metric = Given(tmp_path / "missing" / "y.png")

    with pytest.raises(FileWriteError, match="picture cannot be written"):
        metric.begin()
    with pytest.raises(FileWriteError, match="picture cannot be written"):
        metric.measure(None, {"y": np.ones(1)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "picture.bmp"}, r"'picture.bmp': accepted are names that end with \.png or \.svg"),
        ({"path": "picture"}, "accepted are names"),
        ({"path": 3}, "path is 3"),
        ({"path": None, "log_scale": 1}, "log_scale was given as 1"),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Given(**arguments)
