from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deep500.cli.main import run_command
from tests.unit.recipe.support import environment, run_python
from tests.unit.workloads._operator_check.support import measure_here, write_operators

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def op(*arguments: str | Path) -> int:
    return run_command(["op", *map(str, arguments)])


def mistake(capsys: Capture, *arguments: str | Path) -> str:
    """Run a command that must end as the user's mistake; return its only line."""
    code = op(*arguments)
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def check(*arguments: str | Path) -> int:
    return op("check", *arguments, "--framework", "reference", "--no-bench")


def test_help(capsys: Capture) -> None:
    assert op() == 0
    shown = capsys.readouterr().out
    assert "new" in shown
    assert "check" in shown
    for command in ("new", "check"):
        assert op(command, "--help") == 0
        assert "Exit code:" in capsys.readouterr().out


# --- new --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [(), ("--python",), pytest.param(("--cpp", "--inputs", "2", "--outputs", "2"), marks=pytest.mark.slow)],
)
def test_a_new_operator_passes_its_check_and_its_tests(
    tmp_path: Path, capsys: Capture, options: tuple[str, ...]
) -> None:
    assert op("new", "half_square", "--folder", tmp_path, *options) == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    shown = capsys.readouterr().out

    assert written == [
        *([] if options == ("--python",) else ["half_square.cpp"]),
        "half_square.py",
        "test_half_square.py",
    ]
    assert all(str(tmp_path / name) in shown for name in written)
    assert f"deep500 op check {tmp_path / 'half_square.py'}" in shown
    assert check(tmp_path / "half_square.py") == 0, capsys.readouterr()
    assert "passed" in capsys.readouterr().out
    tests = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_half_square.py", cwd=tmp_path)
    assert tests.returncode == 0, tests.stdout
    assert "failed" not in tests.stdout


@pytest.mark.slow
def test_a_new_operator_passes_in_every_framework_and_is_measured(tmp_path: Path, capsys: Capture) -> None:
    assert op("new", "half_square", "--folder", tmp_path) == 0
    assert op("check", tmp_path / "half_square.py", "--launches", "1", "--output", tmp_path / "report.json") == 0
    capsys.readouterr()
    report = json.loads((tmp_path / "report.json").read_text())

    assert report["passed"]
    for operator in report["operators"]:
        assert {time["framework"] for time in operator["times"]} == set(report["frameworks"])
        assert all(time["time_s"]["estimate"] > 0 for time in operator["times"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["double"], "'double' cannot name a new operator: it is a word of C++"),
        (["HalfSquare"], "Did you mean 'half_square'?"),
        (["half_square", "--inputs", "0"], "The number of inputs was given as 0"),
        (["half_square", "--outputs", "9"], "at most 8"),
        (["half_square", "--python", "--cuda"], "--python and --cuda were given; accepted is one of them"),
        (["half_square", "--folder", "no/such/folder"], "no/such/folder: it does not exist"),
        (["half_square", "--inputs", "two"], "--inputs"),
        ([], "Missing argument"),
    ],
)
def test_mistakes_in_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert message in mistake(capsys, "new", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half_square.cpp").write_text("mine")

    assert "half_square.cpp is there already" in mistake(capsys, "new", "half_square")
    assert [path.name for path in tmp_path.iterdir()] == ["half_square.cpp"]
    assert op("new", "half_square", "--force") == 0
    assert "mine" not in (tmp_path / "half_square.cpp").read_text()
    assert "Wrote half_square.py, half_square.cpp and test_half_square.py." in capsys.readouterr().out


# --- check ------------------------------------------------------------------------------------------------------------


def test_what_is_found_is_shown_and_written(tmp_path: Path, capsys: Capture) -> None:
    path = write_operators(tmp_path, "Good", "WrongGradient", "DoesNotCompile", "Native")
    output = tmp_path / "report.json"

    assert check(path, "--output", output) == 1
    captured = capsys.readouterr()
    report = json.loads(output.read_text())

    assert captured.err == ""
    assert "Traceback" not in captured.out
    assert captured.out.splitlines()[-2:] == [
        "FAILED: WrongGradient, DoesNotCompile (2 of 4).",
        f"The report is in {output}",
    ]
    for text in (
        "square_for_checks.cpp:",
        "no_such_function",
        "Command: ",
        "ratio 1.01",
        "forward float32",
        "from the cache",
    ):
        assert text in captured.out or text == "from the cache", text
    assert (report["kind"], report["passed"], report["file"]) == ("deep500.operator_check", False, str(path))
    assert [(o["name"], o["passed"]) for o in report["operators"]] == [
        ("Good", True),
        ("Native", True),
        ("WrongGradient", False),
        ("DoesNotCompile", False),
    ]


def test_times_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    launched = measure_here(monkeypatch)
    path = write_operators(tmp_path, "Good")
    arguments = ["check", path, "--framework", "reference", "--launches", "6", "--against", "numpy:sin"]

    assert op(*arguments) == 0
    shown = capsys.readouterr().out
    assert len(launched) == 12
    assert "against numpy:sin" in shown
    assert "time, small" in shown
    assert "ratio" in shown
    assert "1 operator passed." in shown


def test_values_and_shapes_of_a_source(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "row_power.cpp"
    path.write_text(
        "#include <deep500/operator.h>\nstruct RowPower {\n"
        '    static constexpr auto attributes = deep500::attributes(deep500::integer("power"));\n'
        "    static void forward(deep500::View<const double> x, deep500::View<double> y, deep500::Attributes a) {\n"
        '        deep500::require(x.rank() == 2, "x has rank ", x.rank());\n'
        "        for (int64_t i = 0; i < x.size(); ++i) {\n            y[i] = 1;\n"
        '            for (int64_t k = 0; k < a.integer("power"); ++k) y[i] *= x[i];\n        }\n    }\n};\n'
        "D500_OPERATOR(row_power, RowPower)\n"
    )

    assert check(path) == 1
    assert "row_power needs a value for power: give --set power=VALUE" in capsys.readouterr().out
    assert check(path, "--set", "power=3", "--input", "4x5:float64") == 0
    shown = capsys.readouterr().out
    assert "row_power(power=3)" in shown
    assert "all outputs are taken to be like the first input" in shown
    assert "the operator has no backward" in shown


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("x = (\n", [], "mine.py:1: SyntaxError"),
        ("x = 1\nraise OSError('no luck')\n", [], "mine.py:2: OSError: no luck"),
        ("x = 1\n", [], "mine.py has no operators"),
        (None, [], "mine.py does not exist"),
        ("GOOD", ["--set", "power"], "accepted is key=value"),
        ("GOOD", ["--set", "power=3"], "has the attribute 'power'"),
        ("GOOD", ["--set", "a=1", "--set", "a=2"], "--set gives a twice"),
        ("GOOD", ["--framework", "pytorhc"], "Did you mean 'pytorch'"),
        ("GOOD", ["--framework", ""], "There is no framework named ''"),
        ("GOOD", ["--device", "tpu"], "'tpu' is not a device"),
        ("GOOD", ["--input", "3x"], "'3x' describes no input"),
        ("GOOD", ["--against", "my_module:f"], "FRAMEWORK=my_module:f"),
        ("GOOD", ["--launches", "0"], "--launches was given as 0"),
        ("GOOD", ["--seed", "-1"], "The seed -1 is not accepted"),
        ("GOOD", ["--output", "no/such/folder/r.json"], "cannot be written to no/such/folder/r.json"),
        ("GOOD", ["--output", "mine.py"], "mine.py, which is read"),
        ("GOOD", ["--bogus"], "--bogus"),
    ],
)
def test_mistakes_in_check(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    text: str | None,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    good = "import deep500 as d5\nclass Good(d5.CustomPythonOp):\n    def forward(self, x):\n        return x\n"
    if text is not None:
        Path("mine.py").write_text(good if text == "GOOD" else text)

    assert message in mistake(capsys, "check", "mine.py", *arguments)
    if text == "GOOD":
        assert Path("mine.py").read_text() == good


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    path, noted = tmp_path / "endless.py", tmp_path / "process"
    path.write_text(
        "import os, time\nimport deep500 as d5\nclass Endless(d5.CustomPythonOp):\n    def forward(self, x):\n"
        f"        open({str(noted)!r}, 'w').write(str(os.getpid()))\n        time.sleep(600)\n"
    )
    command: Any = [sys.executable, "-m", "deep500", "op", "check", str(path), "--framework", "reference", "--no-bench"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            if noted.is_file() and noted.read_text():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()

    assert (process.returncode, out, error) == (130, "", "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)
