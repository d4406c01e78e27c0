from __future__ import annotations

import pytest

from deep500.cli.console import print_error, print_table


def test_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ValueError("first\n  second"))

    assert capsys.readouterr() == ("", "Error: first second\n")


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([("a", "bbb", "x"), ("aaa", "b", "")])

    assert capsys.readouterr().out == "a    bbb  x\naaa  b\n"


def test_empty_table_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([])

    assert capsys.readouterr().out == ""
