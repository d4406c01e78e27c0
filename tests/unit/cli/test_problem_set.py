from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from deep500.cli import problem_set as module
from deep500.cli.main import run_command
from deep500.core.errors import FileWriteError, MeasurementError
from deep500.core.requirement import Requirement
from deep500.measure.results.collection import Collection, read_collection
from deep500.measure.results.document import ProcessRecord
from deep500.measure.sampling import benchmark
from deep500.measure.sampling.launch import Launch
from deep500.measure.workload import parse_workload
from tests.unit.measure.results.support import rows, system

Capture = pytest.CaptureFixture[str]


class Launches:
    """Launches that take no time: the wrapped form takes 2 % longer in every round."""

    def __init__(self) -> None:
        self.specs: list[Sequence[str]] = []
        self.plans: list[Any] = []
        self.before: Callable[[Sequence[str]], None] = lambda specs: None

    def __call__(
        self, specs: Sequence[str], plan: Any, *, seed: int, number: int, environment: bool, tell: Any
    ) -> Launch:
        tell("sampling", 10, "a detail")
        self.before(specs)
        self.specs.append(specs)
        self.plans.append(plan)
        (base,) = rows(launches=1, seed=len(self.specs))
        samples = [base, tuple(1.02 * (1 + 1e-4 * index) * value for index, value in enumerate(base))]
        systems = []
        for spec, row in zip(specs, samples):
            parts = parse_workload(spec)
            factors = {"framework": parts.framework, "device": parts.device, "form": parts.options["form"]}
            identity = {"problem": parts.name, "size": parts.options["size"]}
            systems.append(system([row], [0], label=spec, spec=spec, factors=factors, identity=identity))
        moment = f"2026-01-01T00:00:00.{len(self.specs):03d}+00:00"
        return Launch(tuple(systems), ProcessRecord(moment, True, 0.5, 1.25, 0.01, {"load_1min": 0.1}))


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    found = Launches()
    monkeypatch.setattr(benchmark, "launch_process", found)
    return found


def deepbench(*arguments: str) -> int:
    return run_command(["bench", "deepbench", *arguments])


GEMM = ("--op", "gemm", "--framework", "reference")


def test_forms_of_every_size_share_a_process(launches: Launches, capsys: Capture) -> None:
    assert deepbench(*GEMM, "--limit", "7", "--threads", "1", "--time-limit", "0.25") == 0

    numbers = [parse_workload(native).options["size"] for native, _ in launches.specs]
    assert len(set(numbers)) == 7
    assert list(launches.specs[0]) == [
        f"deepbench:gemm,size={numbers[0]},form={form}@reference" for form in ("native", "wrapped")
    ]
    assert {(plan.threads, plan.time_limit_s) for plan in launches.plans} == {(1, 0.25)}
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "reference"
    assert sum(line.endswith("slower") for line in shown) == 7
    summary = next(line for line in shown if line.startswith("reference: "))
    assert "median overhead over 7 sizes +2.10 % (95 % interval +2.10 .. +2.10 %)" in summary
    assert "7 slower, 0 faster, 0 undecided" in summary
    assert any("of that process alone" in line for line in shown)


def test_every_framework_gets_the_same_sizes(launches: Launches, capsys: Capture) -> None:
    assert deepbench("--op", "convolution", "--framework", "pytorch, reference", "--limit", "2", "--device", "cpu") == 0

    specs = [parse_workload(native) for native, _ in launches.specs]
    assert [(spec.framework, spec.device) for spec in specs] == [("pytorch", "cpu")] * 2 + [("reference", "cpu")] * 2
    assert [spec.options["size"] for spec in specs[:2]] == [spec.options["size"] for spec in specs[2:]]
    shown = capsys.readouterr().out
    assert shown.count("not measured") == 0
    assert shown.count("pytorch: median overhead over 2 sizes") == 1


def test_frameworks_are_those_that_are_installed(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module in ("numpy", "torch"))

    assert deepbench("--op", "gemm", "--limit", "1", "--dtype", "float64") == 0

    specs = [parse_workload(native) for native, _ in launches.specs]
    assert [spec.framework for spec in specs] == ["pytorch", "reference"]
    assert {spec.options["dtype"] for spec in specs} == {"float64"}


def test_without_a_limit_all_sizes_are_planned(launches: Launches, capsys: Capture) -> None:
    def interrupt(specs: Sequence[str]) -> None:
        if launches.specs:
            raise KeyboardInterrupt

    launches.before = interrupt

    assert deepbench(*GEMM) == 130

    assert [parse_workload(native).options["size"] for native, _ in launches.specs] == [1]
    assert "1 undecided" not in (shown := capsys.readouterr().out)
    assert "median overhead over 1 size" in shown
    assert "159 not reached" in shown


def test_several_launches_are_compared(launches: Launches, capsys: Capture) -> None:
    assert deepbench(*GEMM, "--limit", "1", "--launches", "6") == 0

    assert len(launches.specs) == 6
    shown = capsys.readouterr().out
    assert "slower" in shown
    assert "of that process alone" not in shown


def test_result_is_written_after_each_size(launches: Launches, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "gemm.json"
    seen: list[int] = []
    launches.before = lambda specs: seen.append(len(read_collection(path).measurements) if path.exists() else 0)

    assert deepbench(*GEMM, "--limit", "3", "--output", str(path)) == 0

    assert seen == [0, 1, 2]
    found = read_collection(path)
    assert list(found.measurements) == list(found.planned)
    assert all(measurement.design.pairing == "samples" for measurement in found.measurements.values())
    assert capsys.readouterr().out.splitlines()[-1] == f"The result is in {path}"


def test_interruption_loses_nothing_and_the_rest_can_be_resumed(
    launches: Launches, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "gemm.json"

    def interrupt(specs: Sequence[str]) -> None:
        if len(launches.specs) == 2:
            raise KeyboardInterrupt

    launches.before = interrupt
    arguments = [*GEMM, "--limit", "5", "--output", str(path)]
    assert deepbench(*arguments) == 130
    assert "3 not reached" in capsys.readouterr().out
    assert len(read_collection(path).measurements) == 2

    launches.before = lambda specs: None
    assert deepbench(*arguments, "--resume") == 0
    assert len(launches.specs) == 5
    assert len(read_collection(path).measurements) == 5
    assert "median overhead over 5 sizes" in capsys.readouterr().out

    assert deepbench(*arguments, "--resume", "--seed", "1") == 0  # measured in another way: anew
    assert len(launches.specs) == 10
    assert deepbench(*arguments) == 0  # replaced, as bench does
    assert len(launches.specs) == 15


def test_interruption_before_the_first_size_is_told(launches: Launches, capsys: Capture) -> None:
    def interrupt(specs: Sequence[str]) -> None:
        raise KeyboardInterrupt

    launches.before = interrupt

    assert deepbench(*GEMM, "--limit", "2") == 130
    shown = capsys.readouterr()
    assert "interrupted before the first size had been measured" in shown.err
    assert "reference: 2 not reached" in shown.out


def test_size_that_fails_is_told_and_the_others_are_measured(
    launches: Launches, tmp_path: Path, capsys: Capture
) -> None:
    asked: list[Sequence[str]] = []

    def fail(specs: Sequence[str]) -> None:
        asked.append(specs)
        if len(asked) == 2:
            raise MeasurementError("the process died")

    launches.before = fail
    path = tmp_path / "gemm.json"

    assert deepbench(*GEMM, "--limit", "3", "--output", str(path)) == 1

    shown = capsys.readouterr().out
    assert shown.count("not measured: the process died") == 1
    assert "2 slower, 0 faster, 0 undecided, 1 not measured" in shown
    assert list(read_collection(path).left_out.values()) == ["the process died"]


def test_framework_whose_first_size_fails_is_given_up(launches: Launches, capsys: Capture) -> None:
    def fail(specs: Sequence[str]) -> None:
        if specs[0].endswith("@pytorch"):
            raise MeasurementError("there is no such layer")

    launches.before = fail

    assert deepbench("--op", "rnn", "--framework", "pytorch,tensorflow", "--limit", "3") == 1

    assert [parse_workload(native).framework for native, _ in launches.specs] == ["tensorflow"] * 3
    shown = capsys.readouterr().out
    assert shown.count("not measured: there is no such layer") == 1
    assert shown.count("not measured: as the first size of pytorch") == 2
    assert "pytorch: 3 not measured" in shown


def test_nothing_measured_is_a_mistake(launches: Launches, capsys: Capture) -> None:
    def fail(specs: Sequence[str]) -> None:
        raise MeasurementError("there is no such layer")

    launches.before = fail

    assert deepbench("--op", "rnn", "--framework", "reference", "--limit", "2") == 2
    assert "No size could be measured. there is no such layer" in capsys.readouterr().err


def test_size_that_does_not_fit_into_memory_is_left_out(
    launches: Launches, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from deep500.measure.environment import free_memory

    monkeypatch.setattr(free_memory, "free_memory_bytes", lambda: 2**30 + 10_000_000)

    assert deepbench(*GEMM, "--limit", "3") == 0  # the machine's limit is no failure

    shown = capsys.readouterr().out
    assert len(launches.specs) == 1
    assert shown.count("of memory, and 1.084 GB are free") == 2
    assert "0 faster, 0 undecided, 2 not measured" in shown


def test_file_that_cannot_be_written_any_more_is_told(
    launches: Launches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(*_: Any) -> None:
        raise FileWriteError("the disk is full")

    monkeypatch.setattr(Collection, "write", full)

    assert deepbench(*GEMM, "--limit", "2", "--output", str(tmp_path / "g.json")) == 2

    shown = capsys.readouterr()
    assert "the disk is full" in shown.err
    assert "The result is in" not in shown.out


def test_progress_tells_how_long_the_rest_takes(
    launches: Launches, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    told: list[str] = []
    monkeypatch.setattr(module.ProgressLine, "tell", lambda self, text: told.append(text))

    assert deepbench(*GEMM, "--limit", "2") == 0

    first = next(text for text in told if "sampling" in text)
    last = [text for text in told if "sampling" in text][-1]
    assert first.startswith("reference, size 1 of 2 (")
    assert "launch 1 of 1, sampling, 10 samples: a detail" in first
    assert last.startswith("about 0 s left; reference, size 2 of 2 (")


def test_list_imports_no_framework(capsys: Capture) -> None:
    assert deepbench("--list") == 0
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()] == [
        ["gemm", "160", "sizes"],
        ["convolution", "94", "sizes"],
        ["rnn", "53", "sizes"],
        ["all_reduce", "7", "sizes"],
    ]
    assert deepbench("--op", "gemm", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 160
    assert lines[128].split() == ["129", "512x16x512", "8.389", "Mflop,", "1.114", "MB"]
    assert deepbench("--op", "all_reduce", "--list") == 0
    assert len(capsys.readouterr().out.splitlines()) == 7


HEAVY = """
import sys
from deep500.cli.main import run_command
code = run_command(["bench", "deepbench", "--op", "rnn", "--list"])
print(code, [name for name in ("torch", "tensorflow", "onnx") if name in sys.modules])
"""


def test_list_is_quick(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", HEAVY], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.stdout.splitlines()[-1] == "0 []", result.stderr


def test_help_has_examples(capsys: Capture) -> None:
    assert deepbench("--help") == 0

    shown = capsys.readouterr().out
    assert "deep500 bench deepbench --op gemm --framework pytorch,tensorflow,reference --limit 12" in shown
    assert "--against" not in shown
    assert run_command(["bench", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "deep500 bench deepbench" in shown
    assert "--op" not in shown.replace("--op gemm", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--op is missing; the operators of deepbench are gemm, convolution, rnn, all_reduce."),
        (["--op", "gem"], "Did you mean 'gemm'?"),
        (["--op", "gem", "--list"], "Did you mean 'gemm'?"),
        (["--op", "all_reduce"], "deepbench:all_reduce needs several processes that exchange data"),
        (["--op", "gemm", "--framework", "pytorhc"], "Did you mean 'pytorch'?"),
        (["--op", "gemm", "--framework", "pytorch,"], "accepted are different names with commas between them"),
        (["--op", "gemm", "--framework", "pytorch,pytorch"], "accepted are different names"),
        (["--op", "gemm", "--device", "tpu"], "'tpu' is not a device"),
        (["--op", "gemm", "--limit", "0"], "limit was given as 0"),
        (["--op", "gemm", "--launches", "0"], "launches was given as 0"),
        (["--op", "gemm", "--time-limit", "-1"], "time_limit_s was given as -1"),
        (["--op", "gemm", "--threads", "0"], "threads was given as 0"),
        (["--op", "gemm", "--dtype", "int8"], "--dtype was given as 'int8'"),
        (["--op", "gemm", "--seed", "-1"], "The seed -1 is not accepted"),
        (["--op", "gemm", "--output", "no/such/folder/r.json"], "cannot be written to no/such/folder"),
        (["--op", "gemm", "--resume"], "--resume was given without --output"),
        (["--op", "gemm", "--against", "a.b:c"], "--against"),
        (["--op", "gemm", "--picture", "p.png"], "--picture"),
        (["model:lenet"], "model:lenet"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_runs(
    arguments: list[str], message: str, launches: Launches, capsys: Capture
) -> None:
    assert deepbench(*arguments) == 2

    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert launches.specs == []


def test_missing_framework_names_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module != "tensorflow")

    assert deepbench("--op", "gemm", "--framework", "tensorflow") == 2
    assert "pip install 'deep500[tensorflow]'" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--op", "gemm"], ["--limit", "3"], ["--framework", "pytorch"], ["--list"]])
def test_options_of_problem_sets_are_refused_with_workloads(option: list[str], capsys: Capture) -> None:
    assert run_command(["bench", "model:lenet", *option]) == 2
    assert option[0] in capsys.readouterr().err


def test_file_of_another_kind_is_not_resumed(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"kind": "measurement"}')

    assert deepbench(*GEMM, "--output", str(path), "--resume") == 2
    assert "A collection is needed" in capsys.readouterr().err
