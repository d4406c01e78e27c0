from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from deep500.training.events import progress_bar
from deep500.training.events.progress_bar import TerminalBarEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.training_event import OptimizerEvent
from tests.unit.training.support import LinearExecutor, make_trainer


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, legacy_windows=False)


def drawn(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_epochs_batches_loss_rate_and_accuracy_are_shown() -> None:
    console = terminal()
    make_trainer(GradientDescent).run_loop(2, [TerminalBarEvent(console=console)])

    text = drawn(console)
    for part in ("Epoch 1/2", "Epoch 2/2", "4/4", "loss", "samples/s", "Test", "2/2", "accuracy"):
        assert part in text


def test_number_of_epochs_can_be_given() -> None:
    console = terminal()
    make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(90, console=console)])

    assert "Epoch  1/90" in drawn(console)


def test_it_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(1)])

    assert capsys.readouterr() == ("", "")


def test_it_draws_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(1)])

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Epoch 1/1" in captured.err


def test_loss_is_read_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(refresh_s: float) -> int:
        monkeypatch.setattr(progress_bar, "_REFRESH_S", refresh_s)
        executor = LinearExecutor()
        make_trainer(GradientDescent, executor=executor, batch_size=1, tested=False).run_loop(
            1, [TerminalBarEvent(console=terminal())]
        )
        return executor.scalars_read - 30  # those of the statistics

    assert reads(0.0) == 30
    assert reads(3600.0) <= 1


class Failing(OptimizerEvent):
    def after_optimizer_step(self, executor: Any, outputs: Any, loss: Any) -> None:
        raise KeyboardInterrupt


def test_terminal_is_given_back_when_the_run_is_interrupted() -> None:
    console = terminal()
    with pytest.raises(KeyboardInterrupt):
        make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(console=console), Failing()])

    hide, show = "\x1b[?25l", "\x1b[?25h"
    assert drawn(console).count(hide) == drawn(console).count(show) == 1
    assert drawn(console).rindex(show) > drawn(console).rindex(hide)


def test_rich_is_imported_when_it_is_used_only() -> None:
    script = (
        "import sys, deep500.training.events.progress_bar as p; p.TerminalBarEvent(1); assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_line_stays_for_each_epoch_and_the_moving_one_goes() -> None:
    console = terminal()
    make_trainer(GradientDescent).run_loop(2, [TerminalBarEvent(console=console)], test_before=True)

    lines = [line for line in drawn(console).replace("\r", "\n").split("\n") if "\x1b[32m" not in line]
    stay = [line.replace("\x1b[2K", "") for line in lines if line.rstrip().endswith((" s", "%"))]
    assert stay[0].startswith("Before training  accuracy ")
    for line, epoch in zip(stay[1:], ("Epoch 1/2", "Epoch 2/2"), strict=True):
        assert line.startswith(f"{epoch}  loss ")
        assert "test accuracy 100.00 %" in line
    assert drawn(console).endswith("\x1b[1A\x1b[2K")
    assert "left" in drawn(console)


def test_narrow_terminal_has_neither_bar_nor_rate() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=50, legacy_windows=False)
    make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(console=console)])

    assert "samples/s" not in drawn(console)
    assert "━" not in drawn(console)
    assert "4/4" in drawn(console)


def test_it_is_silent_where_stderr_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    assert make_trainer(GradientDescent).run_loop(1, [TerminalBarEvent(1)]).complete


class Slow(OptimizerEvent):
    """Makes each step take two seconds of a clock of its own."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def after_optimizer_step(self, executor: Any, outputs: Any, loss: Any) -> None:
        self.now_ns += 2 * 10**9


def test_times_and_rate_are_of_the_projects_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    console, slow = terminal(), Slow()
    monkeypatch.setattr("deep500.measure.clock.now_ns", lambda: slow.now_ns)
    make_trainer(GradientDescent, batch_size=10).run_loop(1, [slow, TerminalBarEvent(console=console)])

    assert " 6.0 s" in drawn(console)  # three steps
    assert " 5 samples/s" in drawn(console)


def test_what_it_holds_before_a_run_does_not_depend_on_the_time() -> None:
    assert vars(TerminalBarEvent(3)) == vars(TerminalBarEvent(3))
