from __future__ import annotations

from pathlib import Path

import pytest

from deep500.core.errors import FileWriteError, PluginError, UnknownNameError
from deep500.measure.export import EXPORTS, export, exported
from tests.unit.measure.results.support import pair


def test_formats_are_found_by_their_files() -> None:
    assert EXPORTS.names() == ["google_benchmark", "mllog", "pyperf"]


@pytest.mark.parametrize("form", EXPORTS.names())
def test_file_holds_the_text(tmp_path: Path, form: str) -> None:
    export(pair(), form, tmp_path / "export")

    text = (tmp_path / "export").read_text()
    assert text == exported(pair(), form)
    assert text.endswith("\n")
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no export format named 'pyprf'\. Did you mean 'pyperf'"):
        export(pair(), "pyprf", tmp_path / "export")
    assert not list(tmp_path.iterdir())


def test_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="The export cannot be written"):
        export(pair(), "mllog", tmp_path / "missing" / "export")


def test_format_that_returns_no_text_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXPORTS, "get", lambda name: lambda measurement: b"bytes")

    with pytest.raises(PluginError, match="returned a bytes instead of a text"):
        exported(pair(), "planted")
