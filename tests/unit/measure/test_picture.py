from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.image import imread

from deep500.core.errors import FileWriteError, MeasurementError, PluginError, UnknownNameError
from deep500.core.registry import Registry
from deep500.measure import picture
from deep500.measure.picture import PICTURES, check_picture, draw
from tests.unit.measure.pictures.support import draws, measurement

ODD = "a$x^2$ & <b>[i]</b>\x1b[31m -- \ud800 日本語 \n" + "long," * 40


def test_there_is_a_violin_and_an_ecdf() -> None:
    assert {"ecdf", "violin"} <= set(PICTURES.names())


@pytest.mark.parametrize("kind", PICTURES.names())
@pytest.mark.parametrize("name", ["a.png", "b.svg", "C.SVG"])
def test_a_picture_is_written_and_is_the_same_each_time(tmp_path: Path, kind: str, name: str) -> None:
    result = measurement(draws(6, 20), draws(6, 20, seed=1), labels=["old", ODD])
    draw(result, kind, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    draw(result, kind, str(tmp_path / name))

    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith("png"):
        pixels = imread(tmp_path / name)
        assert min(pixels.shape[:2]) > 300
        assert pixels.min() < pixels.max()
    else:
        root = ElementTree.fromstring(first)
        assert root.tag.endswith("svg")
        assert b"<dc:date>" not in first
        assert b"\x1b" not in first


@pytest.mark.parametrize("kind", PICTURES.names())
def test_settings_of_the_user_change_nothing_and_stay_as_they_are(tmp_path: Path, kind: str) -> None:
    draw(measurement(draws(6, 20)), kind, tmp_path / "plain.svg")
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": "own", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        draw(measurement(draws(6, 20)), kind, tmp_path / "other.svg")
        assert dict(matplotlib.rcParams) == before

    assert (tmp_path / "other.svg").read_bytes() == (tmp_path / "plain.svg").read_bytes()


def test_no_window_system_is_touched_and_nothing_is_loaded_before_it_is_needed() -> None:
    script = (
        "import sys, deep500.measure.picture as p\n"
        "assert 'matplotlib' not in sys.modules\n"
        "p.PICTURES.names()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from tests.unit.measure.pictures.support import draws, measurement\n"
        "p.draw(measurement(draws(6, 20)), 'violin', sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "print('done')\n"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script, f"{folder}/a.png"]
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3], timeout=120
        )
    assert finished.stdout == "done\n", finished.stderr


@pytest.mark.parametrize("name", ["a.pdf", "a", ".png", "a.png.gz", "a.jpeg", ""])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    for call in (
        lambda path: check_picture("violin", path),
        lambda path: draw(measurement(draws(6, 20)), "violin", path),
    ):
        with pytest.raises(MeasurementError, match=r"names that end with \.png or \.svg"):
            call(tmp_path / name if name else name)
    assert list(tmp_path.iterdir()) == []


def test_unknown_kinds_are_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'violin'"):
        check_picture("violine", tmp_path / "a.png")
    with pytest.raises(UnknownNameError, match="ecdf, violin"):
        draw(measurement(draws(6, 20)), "histogram", tmp_path / "a.png")


def test_a_place_that_cannot_be_written_is_refused_before(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError):
        check_picture("violin", tmp_path / "missing" / "a.png")
    check_picture("violin", tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_older_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    with pytest.raises(MeasurementError):
        draw(measurement([[1.0, float("nan")]]), "violin", path)

    assert path.read_bytes() == b"old"


def test_a_picture_that_is_no_figure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class One(Registry):
        def get(self, name: str) -> Any:
            return lambda measurement, metric: "no figure"

    monkeypatch.setattr(picture, "PICTURES", One("picture", "deep500.measure.pictures"))

    with pytest.raises(PluginError, match="returned a str"):
        draw(measurement(draws(6, 20)), "violin", tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_labels_are_texts_and_no_formulas(tmp_path: Path) -> None:
    draw(measurement([[1.0] * 12] * 6, labels=["cost $a$ and $b$"]), "violin", tmp_path / "a.svg")

    assert "<!-- cost $a$ and $b$ -->" in (tmp_path / "a.svg").read_text()
