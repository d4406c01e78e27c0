"""The machine as the probes see it: files below a root, environment variables, and commands with a time limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deep500.core.errors import Deep500Error

__all__ = ["System", "UnreadableError", "cpu_list", "format_cpus", "selected"]

#: Longest value of an environment variable that is recorded, in characters.
_LONGEST_VALUE = 500


class UnreadableError(Deep500Error):
    """A field of the environment cannot be read; the message is the reason that stands beside it."""


@dataclass
class System:
    """Where the probes read from; tests give a folder with a made-up ``/proc`` and ``/sys``.

    Attributes:
        root: Folder that stands for ``/``.
        environment: The environment variables, by default those of this moment.
        command_budget_s: Seconds that all commands together may take; it is used up by :meth:`run`.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    command_budget_s: float = 0.7

    def read(self, path: str) -> str:
        """Return the text of a file, without white space at its ends.

        Args:
            path: Absolute path, which is taken below the root.

        Raises:
            UnreadableError: It cannot be read; the message says why.
        """
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            raise UnreadableError(f"{path}: {error.strerror or error}") from error

    def read_integer(self, path: str) -> int:
        """Return the number that a file holds.

        Raises:
            UnreadableError: The file cannot be read or holds something else.
        """
        text = self.read(path)
        try:
            return int(text)
        except ValueError as error:
            raise UnreadableError(f"{path}: holds {text[:60]!r}, not a number") from error

    def read_table(self, path: str, separator: str | None = None) -> dict[str, str]:
        """Return the lines ``key: value`` of a file; the first of several equal keys counts.

        Args:
            path: The file.
            separator: What stands between the two; white space by default.

        Raises:
            UnreadableError: The file cannot be read.
        """
        table: dict[str, str] = {}
        for line in self.read(path).splitlines():
            key, *rest = line.split(separator, 1)[:2] or [""]
            table.setdefault(key.strip(), rest[0].strip() if rest else "")
        return table

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder; false as well where that may not be seen."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except OSError:
            return False

    def paths(self, pattern: str) -> list[str]:
        """Return the absolute paths that match a pattern, numbers in their order: ``cpu2`` before ``cpu10``."""
        try:
            found = [f"/{path.relative_to(self.root).as_posix()}" for path in self.root.glob(pattern.lstrip("/"))]
        except OSError as error:
            raise UnreadableError(f"{pattern}: {error.strerror or error}") from error
        return sorted(found, key=lambda path: (len(path), path))

    def variables(self, names: Iterable[str]) -> dict[str, str]:
        """Return those environment variables of an allow list that are set.

        No prefix is enough to be listed: ``TF_VAR_...`` holds the secrets of Terraform.
        """
        present = {name: self.environment[name] for name in sorted(names) if name in self.environment}
        return {name: value[:_LONGEST_VALUE] for name, value in present.items()}

    def find_command(self, name: str) -> str:
        """Return the path of a command on ``PATH`` or beside the interpreter.

        Raises:
            UnreadableError: There is none.
        """
        folders = [self.environment.get("PATH", os.defpath), str(Path(sys.executable).parent)]
        path = shutil.which(name, path=os.pathsep.join(folders))
        if path is None:
            raise UnreadableError(f"the command {name} is neither on PATH nor beside the Python interpreter")
        return path

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a command and return its standard output.

        Args:
            command: Its name and arguments.
            folder: Where to run it, by default here.

        Raises:
            UnreadableError: It is missing, fails, or takes longer than what is left of the budget.
        """
        path = self.find_command(command[0])
        if self.command_budget_s <= 0:
            raise UnreadableError(f"{command[0]} was not run: the time that all commands may take is used up")
        started = time.monotonic()
        try:
            return self._run(path, command, folder)
        except OSError as error:
            raise UnreadableError(f"{command[0]}: {error.strerror or error}") from error
        finally:
            self.command_budget_s -= time.monotonic() - started

    def _child_environment(self) -> dict[str, str]:
        # Inside one of git's hooks, these would lead away from the folder that is asked about.
        misleading = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"}
        return {**{key: value for key, value in self.environment.items() if key not in misleading}, "LC_ALL": "C"}

    def _run(self, path: str, command: tuple[str, ...], folder: Path | None) -> str:
        process = subprocess.Popen(
            [path, *command[1:]],
            cwd=folder,
            env=self._child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # its children end with it
        )
        try:
            output, complaint = process.communicate(timeout=self.command_budget_s)
        except subprocess.TimeoutExpired as error:
            raise UnreadableError(f"{command[0]} did not end within {self.command_budget_s:.2g} s") from error
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):  # it ended in between
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode:
            lines = complaint.strip().splitlines() or output.strip().splitlines() or ["no message"]
            raise UnreadableError(f"{command[0]} ended with exit code {process.returncode}: {lines[0][:200]}")
        return output


def cpu_list(text: str) -> list[int]:
    """Return the numbers of a list in the kernel's form.

    Raises:
        UnreadableError: It has another form.

    Example:
        >>> cpu_list("0-3,8")
        [0, 1, 2, 3, 8]
    """
    numbers: list[int] = []
    try:
        for part in filter(None, text.strip().split(",")):
            first, dash, last = part.partition("-")
            numbers.extend(range(int(first), int(last if dash else first) + 1))
    except ValueError as error:
        raise UnreadableError(f"{text[:60]!r} is not a list of CPUs such as '0-3,8'") from error
    return numbers


def format_cpus(numbers: Iterable[int]) -> str:
    """Return numbers as a list in the kernel's form.

    Example:
        >>> format_cpus([8, 0, 1, 2, 3])
        '0-3,8'
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def selected(text: str) -> str:
    """Return the choice that the kernel puts in brackets.

    Raises:
        UnreadableError: Nothing is in brackets.

    Example:
        >>> selected("always [madvise] never")
        'madvise'
    """
    _, bracket, rest = text.partition("[")
    if not bracket or "]" not in rest:
        raise UnreadableError(f"{text[:60]!r} has no choice in brackets")
    return rest.partition("]")[0]
