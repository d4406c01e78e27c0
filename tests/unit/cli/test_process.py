from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deep500.cli.process import run_as_process
from tests.unit.recipe.support import environment, signalled, write_recipe

FULL = Path("/dev/full")


def shell(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which $D is the deep500 command."""
    started = {"D": f"{sys.executable} -m deep500", **more}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(**started), capture_output=True, text=True, timeout=120
    )


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", ["list models", "run mine.py"])
def test_full_disk_behind_the_output_is_one_line_and_2(tmp_path: Path, arguments: str) -> None:
    write_recipe(tmp_path, epochs=1, metrics="(d5.TestAccuracy(), 0.0)")
    done = shell(f"$D {arguments} > /dev/full", tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_full_disk_behind_the_errors_is_2(tmp_path: Path) -> None:
    assert shell("$D run nothing 2> /dev/full", tmp_path).returncode == 2


def test_file_size_limit_is_2(tmp_path: Path) -> None:
    done = shell("ulimit -f 0; $D list models > out.txt", tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "File too large" in done.stderr


def test_closed_output_is_one_line_and_2(tmp_path: Path) -> None:
    done = shell("$D list >&-", tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "The standard output is closed." in done.stderr
    assert shell("$D list >&- 2>&-", tmp_path).returncode == 2


def test_closed_standard_error_is_like_dev_null(tmp_path: Path) -> None:
    write_recipe(tmp_path, epochs=1, metrics="(d5.TestAccuracy(), 0.0)")
    passed = shell("$D run mine.py --output r.json 2>&-", tmp_path)

    assert (passed.returncode, passed.stdout.splitlines()[-2:]) == (0, ["PASSED", "The result is in r.json"])
    assert json.loads((tmp_path / "r.json").read_text())["passed"] is True
    wrong = shell("$D run nothing 2>&-", tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_what_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    write_recipe(tmp_path, "é✓.py", epochs=1, metrics="(d5.TestAccuracy(), 0.0)")
    done = shell("$D run é✓.py --output é.json", tmp_path, LC_ALL="C", PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "Recipe \\xe9\\u2713 (\\xe9\\u2713.py)"
    assert done.stdout.splitlines()[-1] == "The result is in \\xe9.json"


def test_sigterm_leaves_a_result_marked_incomplete(tmp_path: Path) -> None:
    write_recipe(tmp_path, epochs=100000)
    command = [sys.executable, "-m", "deep500", "run", "mine.py", "--output", "r.json"]
    done = signalled(command, signal.SIGTERM, tmp_path)

    assert (done.returncode, done.stderr) == (143, "")
    assert done.stdout.splitlines()[-1] == "FAILED (incomplete)"
    assert json.loads((tmp_path / "r.json").read_text())["complete"] is False
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.py", "r.json"]


def test_ctrl_c_while_libraries_are_imported_is_130(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from deep500.cli.main import run_command\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'onnx':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "code = run_command(['run', 'mine.py'])\n"
        "sys.exit(code if 'onnx' in sys.modules else 99)\n"
    )
    write_recipe(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_handlers_are_given_back_to_the_system() -> None:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert run_as_process(lambda: 0) == 0
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
