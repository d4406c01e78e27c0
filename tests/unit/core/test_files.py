from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FileWriteError
from deep500.core.files import check_separate, check_writable, read_regular, write_atomically


def test_file_replaces_an_older_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    mask = os.umask(0o027)
    try:
        write_atomically(path, "new")
    finally:
        os.umask(mask)

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "result.json")

    write_atomically(tmp_path / "link.json", "new")

    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "result.json").read_text() == "new"


def test_failing_write_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(FileWriteError, match=r"cannot be written to .*result.json: No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/folder/r.json", "No such file or directory"),
        ("", "not the name of a file"),
        ("folder/", "not the name of a file"),
        (".", "it is a folder"),
        ("file/r.json", "Not a directory"),
        ("/dev/null", "not a regular file"),
        ("a\0b", "cannot be written"),
        ("x" * 5000, "cannot be written"),
    ],
)
def test_unwritable_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()

    with pytest.raises(FileWriteError, match=message):
        check_writable(name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "result.json")

    assert not list(tmp_path.iterdir())


def test_files_that_are_not_one_are_separate(tmp_path: Path) -> None:
    check_separate({"result": tmp_path / "a", "picture": tmp_path / "b", "export": None}, [tmp_path / "c"])


@pytest.mark.parametrize("name", ["a.json", "./a.json", "folder/../a.json", "link.json"])
def test_output_that_replaces_an_input_or_another_output_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.json").touch()
    (tmp_path / "link.json").symlink_to("a.json")

    with pytest.raises(FileWriteError, match=r"The result cannot be written to a.json, which is read"):
        check_separate({"result": name}, ["a.json"])
    with pytest.raises(FileWriteError, match=r"The picture cannot be written to .*, where the result goes"):
        check_separate({"result": name, "picture": "a.json"})


def test_regular_files_are_read_and_nothing_else_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")

    assert read_regular(tmp_path / "file") == read_regular(str(tmp_path / "link")) == b"abc"
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match="no regular file"):
            read_regular(path)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
