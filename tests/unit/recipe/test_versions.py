from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from deep500._version import __version__
from deep500.recipe.versions import versions_of_run


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a distribution with a model as a plug-in; return the model's module."""
    folder = tmp_path / "planted_models-3.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-models\nVersion: 3.2\n")
    (folder / "entry_points.txt").write_text("[deep500.networks.models]\nplanted = planted_model\n")
    (tmp_path / "planted_model.py").write_text("__all__ = ['planted']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "planted_model", raising=False)
    return "planted_model"


def test_versions() -> None:
    found = versions_of_run("mine", "1.5")

    assert found["mine"] == "1.5"
    assert found["deep500"] == __version__
    assert found["python"] == sys.version.split()[0]
    assert found["numpy"] == np.__version__
    assert "onnx" in found


def test_distribution_whose_plugin_is_loaded_is_named(plugin: str) -> None:
    assert "planted-models" not in versions_of_run("reference", "1")

    importlib.import_module(plugin)

    assert versions_of_run("reference", "1")["planted-models"] == "3.2"


def test_distribution_cannot_replace_a_version(plugin: str, tmp_path: Path) -> None:
    metadata = tmp_path / "planted_models-3.2.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("planted-models", "python"))
    importlib.import_module(plugin)

    assert versions_of_run("reference", "1")["python"] == sys.version.split()[0]
