from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deep500._version import __version__
from deep500.cli import exit_codes, main
from deep500.cli.main import run_command
from deep500.core.requirement import Requirement
from deep500.frameworks import FRAMEWORKS
from tests.unit.recipe.support import check_schema, environment, run_python, signalled, write_recipe

Capture = pytest.CaptureFixture[str]


def mistake(capsys: Capture, *arguments: str | Path) -> str:
    """Run a command that must end as the user's mistake; return its only line."""
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_passed_is_0_and_failed_is_1(tmp_path: Path, capsys: Capture) -> None:
    passing = write_recipe(tmp_path, "passing.py", epochs=1, metrics="(d5.TestAccuracy(), 0.0)")
    failing = write_recipe(tmp_path, "failing.py", epochs=1, metrics="(d5.TestAccuracy(), 100.5)")

    assert run_command(["run", str(passing)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "PASSED"
    assert run_command(["run", str(failing), "--quiet"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "FAILED"


def test_options_reach_the_run(tmp_path: Path, capsys: Capture) -> None:
    path = write_recipe(tmp_path, epochs=1, metrics="(d5.TestAccuracy(), 0.0)", more="'executor_kwargs': {},")
    output = tmp_path / "result.json"
    options = ["--set", "batch_size=16", "--set", "optimizer_kwargs.learning_rate=0.5", "--set", "optimizer=adam"]
    options += ["--set", "optimizer_kwargs={'learning_rate': 0.01}", "--seed", "7", "--device", "cpu"]

    assert run_command(["run", str(path), *options, "--framework", "reference", "--output", str(output)]) == 0

    content = json.loads(output.read_text())
    assert content["mutable"]["batch_size"] == 16
    assert content["mutable"]["optimizer"] == "adam"
    assert content["mutable"]["optimizer_kwargs"] == {"learning_rate": 0.01}
    assert content["seeds"]["recipe"] == 7
    assert content["recipe"] == {"name": "mine", "path": str(path)}
    assert capsys.readouterr().out.splitlines()[-1] == f"The result is in {output}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.py", "result.json"]
    check_schema(content)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "epochs=3"], "'epochs' is FIXED in the recipe 'mine' and cannot be changed (epochs=3)."),
        (["--set", "epochs"], "'epochs' does not set anything"),
        (["--set", "optimiser=adam"], "Did you mean 'optimizer'?"),
        (["--set", "batch_size=-1"], "MUTABLE['batch_size'] is -1; accepted is a whole number from 1."),
        (["--set", "optimizer=momentun"], "Did you mean 'momentum'?"),
        (["--set", "optimizer_kwargs.lr=0.1"], "It takes: learning_rate, momentum, "),
        (["--set", "optimizer_kwargs.learning_rate=fast"], "learning_rate"),
        (["--framework", "pytorhc"], "Did you mean 'pytorch'?"),
        (["--seed", "-1"], "MUTABLE['seed'] is -1"),
        (["--seed", "one"], "--seed"),
        (["--device", "tpu"], "'tpu' is not a device."),
        (["--device", "gpu:0"], "gpu:0"),
        (["--output", "no/such/folder/result.json"], "cannot be written to no/such/folder/result.json"),
        (["--bogus"], "--bogus"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistake_in_an_option(tmp_path: Path, capsys: Capture, options: list[str], message: str) -> None:
    assert message in mistake(capsys, "run", write_recipe(tmp_path), *options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": "'3'"}, "mine.py: FIXED['epochs'] is '3'; accepted is a whole number from 1."),
        ({"more": "'epochs': 3,"}, "mine.py: 'epochs' is in FIXED and in MUTABLE"),
        ({"more": "'momentum': 0.9,"}, "mine.py: MUTABLE has the unknown key 'momentum'"),
        ({"metrics": "(d5.TestAccuracy, 97.0)"}, "write TestAccuracy()"),
        ({"metrics": "('test_acuracy', 97.0)"}, "Did you mean 'test_accuracy'?"),
        ({"text": "x = [\n"}, "mine.py:1: SyntaxError: '[' was never closed"),
        ({"text": "import torhc\n"}, "mine.py:1: ModuleNotFoundError: No module named 'torhc'"),
        ({"text": "FIXED = {{}}\nMUTABLE = {{}}\n"}, "mine.py: defines no METRICS"),
        ({"more": "'events': [3],"}, "'events' has 3, which is not an event"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_mistake_in_the_recipe(tmp_path: Path, capsys: Capture, changes: dict[str, Any], message: str) -> None:
    assert message in mistake(capsys, "run", write_recipe(tmp_path, **changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument"),
        (["run", "no_such_recipe"], "There is no recipe file 'no_such_recipe'."),
        (["run", "digits_lennet"], "Did you mean 'digits_lenet'?"),
        (["list", "model"], "Did you mean 'models'?"),
        (["runn"], "runn"),
        (["--bogus"], "--bogus"),
    ],
)
def test_mistake_in_the_command(capsys: Capture, arguments: list[str], message: str) -> None:
    assert message in mistake(capsys, *arguments)


def test_result_does_not_replace_the_recipe(tmp_path: Path, capsys: Capture) -> None:
    path = write_recipe(tmp_path)
    text = path.read_text()

    assert "that is the recipe itself" in mistake(capsys, "run", path, "--output", path)
    assert path.read_text() == text


def test_missing_framework_names_the_extra(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module != "tensorflow")

    line = mistake(capsys, "run", write_recipe(tmp_path), "--framework", "tensorflow")

    assert "pip install 'deep500[tensorflow]'" in line


def test_recipe_of_a_missing_framework_names_the_extra(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module != "tensorflow")
    # A name that an earlier test has loaded is kept in the package.
    monkeypatch.delitem(vars(FRAMEWORKS.get("tensorflow")), "MomentumOptimizer", raising=False)
    path = write_recipe(tmp_path, text="import deep500.frameworks.tensorflow as d5fw\nX = d5fw.MomentumOptimizer\n")

    assert "mine.py:2: deep500.frameworks.tensorflow needs" in mistake(capsys, "run", path)


def test_error_in_the_recipes_own_code_is_the_users(tmp_path: Path, capsys: Capture) -> None:
    path = write_recipe(tmp_path, more="'optimizer_args': (), 'seed': 1,")
    text = path.read_text().replace("momentum=0.9)", "momentum=0.9,\n    gradient_modifier=lambda g: g / undefined)")
    path.write_text(text)

    code = run_command(["run", str(path), "--output", str(tmp_path / "r.json")])

    line = next(n for n, text in enumerate(text.splitlines(), 1) if "undefined" in text)
    assert code == 2
    assert capsys.readouterr().err == f"Error: {path}:{line}: NameError: name 'undefined' is not defined\n"
    assert json.loads((tmp_path / "r.json").read_text())["complete"] is False


def test_recipe_that_exits_in_mid_training_has_not_passed(tmp_path: Path, capsys: Capture) -> None:
    path = write_recipe(tmp_path)
    path.write_text(path.read_text().replace("momentum=0.9)", "momentum=0.9, gradient_modifier=lambda g: exit(0))"))

    assert run_command(["run", str(path)]) == 2
    assert capsys.readouterr().err == f"Error: {path}:16: SystemExit: 0\n"


def test_closed_pipe_is_no_verdict(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "deep500", "list", "operators"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()

    assert (process.wait(60), error) == (141, "")
    process.stderr.close()


def test_fault_of_deep500_is_told_apart(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from deep500.recipe import runner

    def broken(recipe: Any) -> Any:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(runner, "build_recipe", broken)

    assert run_command(["run", str(write_recipe(tmp_path))]) == 70
    error = capsys.readouterr().err
    assert "Traceback (most recent call last)" in error
    assert "this is a fault of Deep500" in error


def test_help_has_examples(capsys: Capture) -> None:
    for arguments in ([], ["--help"], ["run", "--help"], ["list", "-h"]):
        assert run_command(arguments) == 0
        output = capsys.readouterr().out
        assert "Examples:\n    deep500 " in output
        assert "\\b" not in output
        assert "\b" not in output


def test_list(capsys: Capture) -> None:
    assert run_command(["list"]) == 0
    assert "frameworks\n" in capsys.readouterr().out
    assert run_command(["list", "models"]) == 0
    assert "lenet " in capsys.readouterr().out


def test_exit_codes_are_those_of_the_documentation() -> None:
    codes = [int(line.split()[0]) for line in (main.__doc__ or "").splitlines() if line[:1].isdigit()]

    assert sorted(codes) == sorted(getattr(exit_codes, name) for name in exit_codes.__all__)


def test_module_is_the_command(tmp_path: Path) -> None:
    version = run_python("-m", "deep500", "--version", cwd=tmp_path)
    wrong = run_python("-m", "deep500", "list", "nothing", cwd=tmp_path)

    assert (version.returncode, version.stdout) == (0, f"deep500 {__version__}\n")
    assert (wrong.returncode, wrong.stderr[:7]) == (2, "Error: ")


@pytest.mark.parametrize("arguments", [["--version"], ["list", "models"]])
def test_start_is_fast(tmp_path: Path, arguments: list[str]) -> None:
    # Processor time, and the best of several: the rest measures what else the machine does.
    times = []
    for _ in range(5):
        before = os.times()
        run_python("-m", "deep500", *arguments, cwd=tmp_path)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
        if times[-1] < 0.3:
            break

    assert min(times) < 0.3


@pytest.mark.parametrize("script", [False, True])
def test_ctrl_c_leaves_a_result_marked_incomplete(tmp_path: Path, script: bool) -> None:
    path = write_recipe(tmp_path, epochs=100000)
    output = tmp_path / "result.json"
    command = [sys.executable, "-m", "deep500", "run", str(path), "--output", str(output)]
    if script:
        path.write_text(path.read_text().replace("METRICS) or", f"METRICS, output={str(output)!r}) or"))
        command = [sys.executable, str(path)]
    done = signalled(command, signal.SIGINT, tmp_path)

    content = json.loads(output.read_text())
    assert content["complete"] is False
    assert content["failure"] == "interrupted"
    assert content["statistics"]["outcome"] == "interrupted"
    assert len(content["statistics"]["epochs"]) >= 1
    assert content["metrics"][0]["passed"] is False
    assert done.stdout.splitlines()[-1] == "FAILED (incomplete)"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.py", "result.json"]
    if script:
        assert done.returncode == -signal.SIGINT
    else:
        assert (done.returncode, done.stderr) == (130, "")
    check_schema(content)


def test_error_in_a_module_beside_the_recipe_is_the_users(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "beside.py").write_text(
        "from deep500.training.training_event import RunnerEvent\n"
        "class E(RunnerEvent):\n"
        "    def before_epoch(self, *arguments): raise ValueError('a\\nb')\n"
    )
    path = write_recipe(tmp_path, more="'events': [__import__('beside').E()],")

    assert run_command(["run", str(path), "-q"]) == 2
    assert capsys.readouterr().err == f"Error: {tmp_path / 'beside.py'}:3: ValueError: a b\n"


@pytest.mark.parametrize("error", ["GeneratorExit()", "StopIteration()", "SystemExit(0)", "MemoryError()"])
def test_whatever_the_recipe_raises_is_2(tmp_path: Path, capsys: Capture, error: str) -> None:
    path = write_recipe(tmp_path)
    modifier = f"momentum=0.9, gradient_modifier=lambda g: (_ for _ in ()).throw({error}))"
    path.write_text(path.read_text().replace("momentum=0.9)", modifier))

    assert run_command(["run", str(path), "-q"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_too_little_memory_is_no_fault(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from deep500.recipe import runner

    def hungry(*arguments: Any) -> Any:
        raise MemoryError("Unable to allocate 466. TiB")

    monkeypatch.setattr(runner, "build_recipe", hungry)

    assert "There is not enough memory" in mistake(capsys, "run", write_recipe(tmp_path))
