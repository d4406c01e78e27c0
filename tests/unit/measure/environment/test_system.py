from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from deep500.measure.environment.system import System, UnreadableError, cpu_list, format_cpus, selected
from tests.unit.measure.environment.support import command, write


def system(root: Path, **environment: str) -> System:
    return System(root, {"PATH": str(root / "bin"), **environment})


@pytest.mark.parametrize(("text", "numbers"), [("", []), ("5", [5]), ("0-2,8,10-11\n", [0, 1, 2, 8, 10, 11])])
def test_list_of_cpus(text: str, numbers: list[int]) -> None:
    assert cpu_list(text) == numbers
    assert format_cpus(numbers) == text.strip()


@pytest.mark.parametrize("text", ["a", "1-", "1-b", "0x3"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match=text):
        cpu_list(text)


def test_selected_needs_brackets() -> None:
    assert selected("[always] madvise") == "always"
    with pytest.raises(UnreadableError, match="brackets"):
        selected("always [madvise")


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"^/proc/none: No such file or directory$"):
        system(tmp_path).read("/proc/none")


def test_forbidden_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:  # root may read everything, so the refusal is made up
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)

    with pytest.raises(UnreadableError, match=r"^/proc/secret: Permission denied$"):
        system(tmp_path).read("/proc/secret")


def test_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with pytest.raises(UnreadableError, match="directory"):
        system(tmp_path).read("/proc")


def test_bytes_that_are_no_text_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfea")
    assert system(tmp_path).read("/file").endswith("a")


def test_what_is_no_number_is_told(tmp_path: Path) -> None:
    write(tmp_path, "/n", "1e3")
    with pytest.raises(UnreadableError, match="/n: holds '1e3', not a number"):
        system(tmp_path).read_integer("/n")


def test_first_of_equal_keys_counts(tmp_path: Path) -> None:
    write(tmp_path, "/t", "a : 1\n\nb\na : 2")
    assert system(tmp_path).read_table("/t", ":") == {"a": "1", "": "", "b": ""}


def test_paths_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write(tmp_path, f"/sys/cpu{number}", "")
    assert system(tmp_path).paths("/sys/cpu[0-9]*") == ["/sys/cpu1", "/sys/cpu2", "/sys/cpu10"]


def test_only_listed_variables_are_told(tmp_path: Path) -> None:
    machine = system(tmp_path, A="1", B="x" * 1000, SECRET="s")
    assert machine.variables(["B", "A", "C"]) == {"A": "1", "B": "x" * 500}


def test_command_gives_its_output(tmp_path: Path) -> None:
    command(tmp_path, "tool", 'echo "$1 $LC_ALL $GIT_DIR$GIT_AUTHOR"')
    assert system(tmp_path, GIT_DIR="/x", GIT_AUTHOR="me").run("tool", "hi") == "hi C me\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo first >&2; echo second >&2; exit 3", "^tool ended with exit code 3: first$"),
        ("exit 1", "exit code 1: no message"),
    ],
)
def test_command_that_fails_is_told(tmp_path: Path, script: str, reason: str) -> None:
    command(tmp_path, "tool", script)
    with pytest.raises(UnreadableError, match=reason):
        system(tmp_path).run("tool")


def test_missing_command_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no_such_tool is neither on PATH"):
        system(tmp_path).run("no_such_tool")


def test_command_that_cannot_start_is_told(tmp_path: Path) -> None:
    write(tmp_path, "bin/tool", "#!/no/such/interpreter")
    (tmp_path / "bin/tool").chmod(0o755)
    with pytest.raises(UnreadableError, match=r"^tool: "):
        system(tmp_path).run("tool")


def test_slow_command_ends_with_its_children_and_uses_up_the_budget(tmp_path: Path) -> None:
    command(tmp_path, "tool", "/bin/sleep 30 & echo $! > " + str(tmp_path / "child") + "; wait")
    machine = system(tmp_path)
    machine.command_budget_s = 0.3
    started = time.monotonic()

    with pytest.raises(UnreadableError, match=r"tool did not end within 0\.3 s"):
        machine.run("tool")
    with pytest.raises(UnreadableError, match="used up"):
        machine.run("tool")

    assert time.monotonic() - started < 5
    child = int((tmp_path / "child").read_text())
    assert not _runs(child)


def _runs(process: int) -> bool:
    for _ in range(100):
        try:
            os.kill(process, 0)
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return False
        if state == "Z":  # ended, and nobody has asked yet
            return False
        time.sleep(0.02)
    return True
