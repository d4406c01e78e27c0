from __future__ import annotations

from pathlib import Path

import pytest

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
