from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from deep500.core.errors import MissingDependencyError


@pytest.mark.parametrize("library", ["numpy", "no_such_library"])
def test_attached_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    package = f"attached_{library}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "work.py").write_text("answer = 42\n")
    (folder / "__init__.pyi").write_text("from .work import answer\n")
    (folder / "__init__.py").write_text(
        textwrap.dedent(f"""
        from deep500.core.requirement import Requirement
        from deep500.networks.adapter import attach_adapter
        _load, __dir__, __all__ = attach_adapter(Requirement({library!r}, "fast", ()), __name__, __file__)
        def __getattr__(name):
            return _load(name)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__(package)

    assert dir(module) == ["answer"]
    assert f"{package}.work" not in sys.modules
    if library == "numpy":
        assert module.answer == 42
    else:
        with pytest.raises(MissingDependencyError, match=f"{package} needs the library 'no_such_library'"):
            _ = module.answer
    with pytest.raises(AttributeError):
        _ = module.no_such_name
