from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from deep500.cli.blame import circumstance, recipe_error


class OutOfMemoryError(RuntimeError):
    """As PyTorch names its own."""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "the output: No space left on device."),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG), "a\nb"), "'a\\nb': File too large."),
        (MemoryError("Unable to allocate 466. TiB"), "not enough memory (Unable to allocate 466. TiB)"),
        (OutOfMemoryError("device"), "not enough memory (device)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_machines_limits_are_no_fault(error: BaseException, message: str) -> None:
    assert message in (circumstance(error) or "")


def test_other_errors_are_no_circumstance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert circumstance(ValueError("I/O operation on closed file.")) is None
    assert circumstance(FileNotFoundError(errno.ENOENT, "gone")) is None

    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
    assert "was closed" in (circumstance(ValueError("I/O operation on closed file.")) or "")


def raised_in(path: Path, text: str = "1 / 0\n") -> BaseException:
    path.write_text(text)
    try:
        exec(compile(text, str(path), "exec"))
    except ZeroDivisionError as error:
        return error
    raise AssertionError


def test_code_of_the_recipe_and_beside_it_is_the_recipes(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.py"

    assert recipe_error(str(recipe), raised_in(recipe)) == f"{recipe}:1: ZeroDivisionError: division by zero"
    beside = tmp_path / "beside.py"
    assert recipe_error(str(recipe), raised_in(beside)) == f"{beside}:1: ZeroDivisionError: division by zero"


def test_other_code_is_not_the_recipes(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()

    assert recipe_error(str(tmp_path / "recipes" / "mine.py"), raised_in(tmp_path / "other.py")) is None
    assert recipe_error(None, raised_in(tmp_path / "other.py")) is None
