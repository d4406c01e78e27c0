from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from deep500.core.errors import InvalidInputError, MeasurementError
from deep500.measure.rendering import FORMATS, picture_format, rendered


def drawn() -> Figure:
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4], label="日本語")
    return figure


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_figure_gives_the_same_bytes_each_time(suffix: str, start: bytes) -> None:
    content = rendered(drawn, suffix)

    assert content.startswith(start)
    assert rendered(drawn, suffix) == content


@pytest.mark.parametrize(("path", "suffix"), [("a.png", ".png"), ("b/C.SVG", ".svg"), (Path("d.e.svg"), ".svg")])
def test_format_is_that_of_the_name(path: Any, suffix: str) -> None:
    assert picture_format(path) == suffix
    assert suffix in FORMATS


@pytest.mark.parametrize("path", ["a", "a.bmp", "png", ""])
def test_other_names_are_refused(path: str) -> None:
    with pytest.raises(MeasurementError, match=r"names that end with .png or .svg"):
        picture_format(path)
    with pytest.raises(InvalidInputError, match=r"names that end with"):
        picture_format(path, InvalidInputError)
