from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FileWriteError, OperatorError
from deep500.operators.skeleton import writing
from deep500.operators.skeleton.rendering import render_skeleton
from deep500.operators.skeleton.writing import write_skeleton

NAMES = ["half_square.cpp", "half_square.py", "test_half_square.py"]


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written(tmp_path: Path) -> None:
    written = write_skeleton("half_square", folder=tmp_path)

    assert [path.name for path in written] == ["half_square.py", "half_square.cpp", "test_half_square.py"]
    assert listed(tmp_path) == NAMES
    for path in written:
        assert path.read_text() == render_skeleton("half_square")[path.name]


@pytest.mark.parametrize("present", NAMES)
def test_nothing_is_replaced_unasked(tmp_path: Path, present: str) -> None:
    (tmp_path / present).write_text("mine")

    with pytest.raises(FileWriteError, match=f"{present} is there already.*--force"):
        write_skeleton("half_square", folder=tmp_path)

    assert listed(tmp_path) == [present]
    assert (tmp_path / present).read_text() == "mine"
    write_skeleton("half_square", folder=tmp_path, replace=True)
    assert listed(tmp_path) == NAMES
    assert (tmp_path / present).read_text() == render_skeleton("half_square")[present]


def test_a_link_that_leads_nowhere_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "half_square.py").symlink_to(tmp_path / "nothing")

    with pytest.raises(FileWriteError, match="is there already"):
        write_skeleton("half_square", folder=tmp_path)


@pytest.mark.parametrize(("folder", "message"), [("missing", "does not exist"), ("file", "is no folder")])
def test_folders_that_are_none(tmp_path: Path, folder: str, message: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FileWriteError, match=message):
        write_skeleton("half_square", folder=tmp_path / folder)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder in which nobody may make a file")
def test_a_folder_that_nobody_may_write_to() -> None:
    with pytest.raises(FileWriteError, match=r"The operator's file cannot be written to /proc/self/half_square.py"):
        write_skeleton("half_square", folder="/proc/self")


def test_a_folder_in_the_place_of_a_file_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "test_half_square.py").mkdir()

    with pytest.raises(FileWriteError, match="it is a folder"):
        write_skeleton("half_square", folder=tmp_path, replace=True)

    assert listed(tmp_path) == ["test_half_square.py"]


@pytest.mark.parametrize("present", [False, True])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_disk_that_is_full_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: bool, failing: int
) -> None:
    if present:
        for name in NAMES:
            (tmp_path / name).write_text(f"my {name}")
    write, calls = writing.write_atomically, []

    def limited(path: Any, content: Any, what: str = "file") -> None:
        calls.append(path)
        if len(calls) == failing + 1:
            raise FileWriteError("the disk is full")
        write(path, content, what)

    monkeypatch.setattr(writing, "write_atomically", limited)

    with pytest.raises(FileWriteError, match="the disk is full"):
        write_skeleton("half_square", folder=tmp_path, replace=present)

    assert len(calls) > failing
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == ({n: f"my {n}" for n in NAMES} if present else {})


def test_a_bad_name_is_told_before_anything_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="a word of C"):
        write_skeleton("double", folder=tmp_path / "missing")
