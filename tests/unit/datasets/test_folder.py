from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import DatasetError
from deep500.core.texts import shown_path
from deep500.datasets.folder import data_folder


def test_argument_wins_over_variable_and_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DEEP500_DATA", raising=False)

    assert data_folder() == tmp_path / "cache" / "deep500" / "datasets"
    monkeypatch.setenv("DEEP500_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder("~/argument") == tmp_path / "home" / "argument"


def test_empty_variable_names_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DEEP500_DATA", "")

    assert data_folder() == tmp_path / "deep500" / "datasets"
    assert not data_folder().exists()


def test_a_home_that_is_not_there_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP500_DATA", "~no_such_user/data")

    with pytest.raises(DatasetError, match=r"'~no_such_user/data' by the environment variable DEEP500_DATA.*no such"):
        data_folder()
    with pytest.raises(DatasetError, match=r"was named '~no_such_user', and there is no such home folder"):
        data_folder("~no_such_user")


def test_paths_with_odd_characters_are_quoted() -> None:
    assert shown_path("a/é.py") == "a/é.py"
    assert shown_path(Path("a\nb")) == "'a\\nb'"
    assert shown_path("a\x00b\udcff") == "'a\\x00b\\udcff'"


@pytest.mark.parametrize("folder", [3, "x/" * 5000, b"x"], ids=["number", "long", "bytes"])
def test_what_is_no_path(folder: Any) -> None:
    with pytest.raises(DatasetError, match="accepted is the path of a folder"):
        data_folder(folder)
