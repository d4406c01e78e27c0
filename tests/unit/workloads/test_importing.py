from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deep500.core.errors import Deep500Error, MeasurementError, MissingDependencyError
from deep500.workloads._importing import find_object, importable_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", os.getcwd())])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def find(name: str) -> object:
    with importable_folder():
        return find_object(name)


def message(name: str) -> str:
    with pytest.raises(MeasurementError) as caught:
        find(name)
    return str(caught.value)


# --- the working folder -----------------------------------------------------------------------------------------------


def test_module_in_the_working_folder_is_found(folder: Path) -> None:
    (folder / "mine.py").write_text("class A:\n    class B:\n        @staticmethod\n        def f(): return 3\n")

    assert find("mine:A.B.f")() == 3  # type: ignore[operator]
    assert find("os.path:join") is os.path.join


def test_working_folder_comes_first_and_leaves_the_path_as_it_was(folder: Path) -> None:
    before = list(sys.path)

    with importable_folder():
        assert sys.path == [str(folder), *before]

    assert sys.path == before


@pytest.mark.parametrize("entry", ["", None])
def test_working_folder_that_is_on_the_path_is_not_added(
    folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str | None
) -> None:
    path = [*sys.path, str(folder) if entry is None else entry]
    monkeypatch.setattr(sys, "path", path)

    with importable_folder():
        assert sys.path == path

    assert sys.path == path


def test_path_is_restored_after_an_error_and_where_the_module_changes_it(folder: Path) -> None:
    (folder / "bad.py").write_text("import sys\nsys.path.remove(sys.path[0])\n1 / 0\n")
    before = list(sys.path)

    assert "ZeroDivisionError" in message("bad:f")
    assert sys.path == before


def test_working_folder_that_is_gone_adds_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    before = list(sys.path)

    with importable_folder():
        assert sys.path == before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no such switch")
def test_pythons_switch_against_it_is_obeyed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Flags:
        safe_path = True

    monkeypatch.setattr(sys, "flags", Flags())

    with importable_folder():
        assert str(folder) not in sys.path


# --- what cannot be found ---------------------------------------------------------------------------------------------


def test_missing_module_is_told_from_one_that_it_imports(folder: Path) -> None:
    (folder / "mine.py").write_text("\nimport no_such_library\n")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text("from package import other\n")

    assert message("mines:f") == (
        "'mines:f' cannot be measured: there is no module 'mines', neither in the working folder nor installed. "
        "Did you mean 'mine'?"
    )
    assert message("package.innr:f") == (
        "'package.innr:f' cannot be measured: there is no module 'package.innr' in the package package. "
        "Did you mean 'inner'?"
    )
    own = message("mine:f")
    assert f"importing mine failed in {folder / 'mine.py'}:2: ModuleNotFoundError" in own
    assert "no_such_library" in own
    assert "importing package.inner failed" in message("package.inner:f")
    assert "ImportError" in message("package.inner:f")


def test_kind_that_is_misspelt_is_hinted_at(folder: Path) -> None:
    assert message("modle:lenet").endswith("Did you mean 'model'?")


def test_module_is_no_package(folder: Path) -> None:
    (folder / "mine.py").write_text("def f(): pass\n")

    assert message("mine.f:g").endswith(
        "there is no module 'mine.f'; mine is a module, not a package. An attribute stands after a colon: mine:f."
    )


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(:\n", "SyntaxError"),
        ("\n\nraise ValueError('two\\nlines')\n", r"mine.py:3: ValueError: two lines"),
        ("raise SystemExit(1)\n", "it exits while it is imported; .* if __name__ == '__main__'"),
        ("raise ModuleNotFoundError('by hand')\n", "ModuleNotFoundError: by hand"),
        ("def f():\n    g()\ndef g():\n    1 / 0\nf()\n", "mine.py:4: ZeroDivisionError"),
    ],
)
def test_module_that_fails_says_where(folder: Path, source: str, what: str) -> None:
    (folder / "mine.py").write_text(source)

    with pytest.raises(
        MeasurementError, match=rf"'mine:f' cannot be measured: importing mine failed.*{what}"
    ) as caught:
        find("mine:f")
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


def test_error_of_deep500_goes_through_as_it_is(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from deep500.core.errors import MissingDependencyError\nraise MissingDependencyError('needs x')\n"
    )

    with pytest.raises(Deep500Error, match="needs x") as caught:
        find("mine:f")
    assert type(caught.value) is MissingDependencyError


def test_interruption_goes_through(folder: Path) -> None:
    (folder / "mine.py").write_text("raise KeyboardInterrupt\n")

    with pytest.raises(KeyboardInterrupt):
        find("mine:f")


def test_missing_attribute_is_hinted_at(folder: Path) -> None:
    (folder / "mine.py").write_text("class Problem:\n    def solve(self): pass\n")

    assert message("mine:Problm") == "'mine:Problm': mine has no 'Problm'. Did you mean 'Problem'?"
    assert message("mine:Problem.sove") == "'mine:Problem.sove': mine.Problem has no 'sove'. Did you mean 'solve'?"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("__main__:f", "script that is running"),
        ("mine:<lambda>", "a lambda or a function within a function"),
        ("mine:f.<locals>.g", "a lambda or a function within a function"),
        ("mine:", "accepted is package.module:function"),
        ("mine:f(1)", "accepted is package.module:function"),
        ("mine:a..b", "accepted is package.module:function"),
        (":f", "accepted is package.module:function"),
        ("a/b.py:f", "accepted is package.module:function"),
    ],
)
def test_name_that_no_process_could_import_is_refused(name: str, what: str) -> None:
    assert what in message(name)
