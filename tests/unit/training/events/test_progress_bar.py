from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from deep500.training.events import progress_bar
from deep500.training.events.progress_bar import TerminalBarEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.training_event import OptimizerEvent, RunnerEvent, StopTraining
from tests.unit.training.support import LinearExecutor, clusters, make_trainer


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


def times_left(console: Console) -> list[str]:
    return re.findall(r"(\d+:\d\d:\d\d) left", drawn(console))


class Seconds(OptimizerEvent, RunnerEvent):
    """Makes each step take 1 s and each minibatch of a test 3 s of a clock of its own."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def before_optimizer_step(self, executor: Any, inputs: Any) -> None:
        self.now_ns += 10**9

    def before_test_batch(self, runner: Any, training_stats: Any, inputs: Any) -> None:
        self.now_ns += 3 * 10**9


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr("deep500.measure.clock.now_ns", lambda: clock.now_ns)
    monkeypatch.setattr("deep500.training.pass_meter.now_ns", lambda: clock.now_ns)
    return clock


@pytest.mark.parametrize("budget", [{"steps": 6}, {"samples": 42}])
def test_a_budget_within_an_epoch_has_its_steps_and_what_is_left(seconds: Seconds, budget: dict[str, int]) -> None:
    console = terminal()
    make_trainer(GradientDescent, tested=False).run_loop(**budget, events=[seconds, TerminalBarEvent(console=console)])  # type: ignore[arg-type]

    assert "4/4" in drawn(console)
    assert "2/2" in drawn(console)  # of the second epoch two steps
    assert "Epoch 2/2" in drawn(console)
    left = times_left(console)
    assert left[0] == "0:00:05"
    assert left[-1] == "0:00:00"


def test_a_budget_of_seconds_has_what_is_left_of_them(seconds: Seconds) -> None:
    console = terminal()
    stats = make_trainer(GradientDescent).run_loop(
        time_limit_s=6.0, events=[seconds, TerminalBarEvent(console=console)], evaluate_every_steps=2
    )

    assert stats.steps == 6
    assert "Epoch 1 Train" in drawn(console)
    assert "Epoch 2  loss" in drawn(console)
    left = times_left(console)
    assert left[0] == "0:00:05"
    assert left[-1] == "0:00:00"
    assert "0:00:03" in left  # tests between steps take none of it


def test_after_a_test_between_two_steps_the_training_is_shown_again(seconds: Seconds) -> None:
    console = terminal()
    make_trainer(GradientDescent, batch_size=5).run_loop(
        1, [seconds, TerminalBarEvent(console=console)], evaluate_every_steps=3
    )

    titles = re.findall(r"Epoch 1/1 (Train|Test)", drawn(console))
    changes = [one for one, before in zip(titles, ["", *titles]) if one != before]
    assert changes == ["Train", "Test", "Train", "Test"]
    assert "4/6" in drawn(console)
    assert drawn(console).count(" 5 samples/s") > 1  # of the training without the tests within


def test_a_training_that_goes_on_counts_from_there(seconds: Seconds) -> None:
    class Snapshot(RunnerEvent):
        taken: Any = None

        def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
            if step == 4:
                Snapshot.taken = runner.state()
                raise StopTraining

    make_trainer(GradientDescent, tested=False).run_loop(3, [Snapshot()])
    trainer, console = make_trainer(GradientDescent, tested=False), terminal()
    trainer.restore(Snapshot.taken)
    trainer.run_loop(3, [seconds, TerminalBarEvent(console=console)])

    assert "Epoch 2/3" in drawn(console)
    second = drawn(console).partition("Epoch 3/3")[0]
    assert "1/4" not in second
    assert "2/4" in second
    assert times_left(console)[0] == "0:00:06"


def test_a_third_set_has_a_line() -> None:
    console = terminal()
    trainer = make_trainer(GradientDescent)
    trainer.test_sampler = OrderedSampler(clusters(9, seed=3), 4)
    trainer.run_loop(1, [TerminalBarEvent(console=console)])

    assert "Test set  accuracy 100.00 %" in drawn(console)
