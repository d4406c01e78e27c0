from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from deep500.core.errors import MissingDependencyError
from deep500.core.requirement import Requirement

MISSING = Requirement("no_such_library", "fast", ("no-such-library",))
NUMPY = Requirement("numpy", "core", ("no-such-library", "numpy"))


def test_installed_library() -> None:
    assert NUMPY.is_installed()
    assert NUMPY.version() == np.__version__
    NUMPY.require("Anything")


def test_missing_library() -> None:
    assert not MISSING.is_installed()
    assert MISSING.version() == "unavailable"
    with pytest.raises(MissingDependencyError, match=r"^The X needs the library 'no_such_library'.*'deep500\[fast\]'$"):
        MISSING.require("The X")


def test_part_of_a_missing_library_is_missing() -> None:
    assert not Requirement("no_such_library.part", "fast", ()).is_installed()


def test_blocked_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lazy_loader_blocked", None)  # as `import` leaves it where it is forbidden

    assert not Requirement("lazy_loader_blocked", "fast", ()).is_installed()


def test_asking_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "explosive_library.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)

    assert Requirement("explosive_library", "fast", ()).is_installed()
