from __future__ import annotations

import sys
from typing import Any

import pytest

from deep500.cli.progress_line import ProgressLine, progress_text
from deep500.measure.sampling.progress import Progress


def test_text_of_a_progress() -> None:
    assert progress_text(Progress(2, 10, "starting")) == "launch 2 of 10, starting"
    assert progress_text(Progress(1, 1, "sampling", 40, "why")) == "launch 1 of 1, sampling, 40 samples: why"


@pytest.mark.parametrize(("is_terminal", "quiet"), [(False, False), (True, True)])
def test_nothing_moves_where_nobody_looks(
    is_terminal: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with ProgressLine(quiet) as line:
        line.tell("moving")
        line.print("a line")

    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a line\n", "")


def test_lines_go_to_the_standard_output_while_it_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, rich sends what is printed under a moving line to the console of that line."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    told: list[Any] = []
    with ProgressLine(False) as line:
        line.tell("[bold]is no markup")
        told.append(line._status.status.plain)
        line.print("a line")
        line.tell("and on" * 1000)
        told.append(line._status.status.plain)
        width = line._status.console.width

    assert told[0] == "[bold]is no markup"
    assert told[1].startswith("and on")
    assert told[1].endswith("…")
    assert len(told[1]) < width - 2
    assert capsys.readouterr().out == "a line\n"
