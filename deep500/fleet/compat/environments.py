"""Environments for cells: resolved once, made once for each set of packages, and kept.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library, and pip in the
environments that it makes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from deep500.fleet.compat.job_record import utc_s
    from deep500.fleet.compat.processes import OutOfTimeError, now_s, run, without_python_settings
else:  # as a job: the neighbours lie beside it
    from job_record import utc_s
    from processes import OutOfTimeError, now_s, run, without_python_settings

__all__ = ["EnvironmentFailedError", "EnvironmentMaker", "MadeEnvironment", "cache_folder", "find_python"]

#: The variable that names another folder for environments.
CACHE_VARIABLE = "DEEP500_FLEET_CACHE"

#: The mark of an environment that is whole.
_FINISHED = "finished.json"

#: From this version on pip installs into other environments (``--python``), which then need none themselves.
_PIP_FOR_OTHERS = (22, 3)

_SAYS_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_SAYS_BUILD = "import sys, sysconfig; print(sys.version, sysconfig.get_platform(), sys.base_prefix)"


class EnvironmentFailedError(Exception):
    """The libraries do not fit together, or cannot be installed."""


@dataclass(frozen=True)
class MadeEnvironment:
    """An environment that stands.

    Attributes:
        python: Its Python.
        lock: What is installed, a line each: name, version and hash.
        lock_hash: The hash of that, under which it is kept.
        reused: Whether it was there before.
        size_bytes: What it takes on disk.
        free_bytes: What was left there afterwards.
    """

    python: Path
    lock: str
    lock_hash: str
    reused: bool
    size_bytes: int
    free_bytes: int

    @property
    def text(self) -> str:
        """What it is, in one line."""
        packages = len([line for line in self.lock.splitlines() if not line.startswith("#")])
        return (
            f"{packages} packages, lock {self.lock_hash[:12]}, {'found' if self.reused else 'made'}; "
            f"{self.size_bytes / 1e6:,.0f} MB, {self.free_bytes / 1e9:,.1f} GB left"
        )


def cache_folder() -> Path:
    """Return where environments are kept: what ``DEEP500_FLEET_CACHE`` says, or a folder of the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/deep500/fleet"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deep500" / "fleet"


def find_python(version: str) -> str:
    """Return a Python of this version: the one that runs this, or one by its name on the search path.

    Raises:
        EnvironmentFailedError: There is none.
    """
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}" and sys.executable:
        return sys.executable
    for candidate in (*_on_path(f"python{version}"), *_on_path("python3"), *_on_path("python")):
        if _says(candidate, _SAYS_VERSION) == version:
            return candidate
    raise EnvironmentFailedError(f"There is no Python {version} on this machine: python{version} is not on the PATH.")


def _on_path(name: str) -> list[str]:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = [shutil.which(name, path=folder) for folder in folders if folder]
    return [path for path in found if path]


def _build(python: str) -> str:
    """Return which Python it is: environments of another one are others."""
    if python == sys.executable:
        return f"{sys.version} {sysconfig.get_platform()} {sys.base_prefix}"
    return _says(python, _SAYS_BUILD) or python


def _says(python: str, program: str) -> str | None:
    """Return what a program writes; ``None`` where it cannot run, as where a launcher knows no such version."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", program], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


class EnvironmentMaker:
    """Makes the environment of one cell, within a time."""

    def __init__(self, cache: Path, deadline: float, output: IO[str], errors: IO[str]) -> None:
        """Say where environments are kept, when to end (:func:`now_s`), and where pip's words go."""
        self._cache, self._deadline = cache, deadline
        self._output, self._errors = output, errors

    def make(self, requirements: Path, version: str) -> MadeEnvironment:
        """Return the environment in which these requirements are installed, with this version of Python.

        Raises:
            EnvironmentFailedError: There is no such Python, the requirements do not fit together, or the installation
                failed.
            OutOfTimeError: The deadline passed.
        """
        try:
            return self._make(requirements, find_python(version))
        except OSError as error:
            raise EnvironmentFailedError(f"{error.strerror or error}: {error.filename or self._cache}") from error

    def _make(self, requirements: Path, python: str) -> MadeEnvironment:
        private_folder(self._cache)
        build = _build(python)
        lock = f"# {build}\n{self._resolved(requirements, python, build)}"
        name = hashlib.sha256(lock.encode()).hexdigest()
        folder = self._cache / "environments" / name
        with self._locked(folder.with_suffix(".lock")) as handle:
            reused = _mark(folder) is not None
            if not reused:
                self._install(folder, python, build, requirements, lock, handle)
            size = int((_mark(folder) or {}).get("size_bytes", 0))
        free = shutil.disk_usage(folder).free
        return MadeEnvironment(folder / "bin" / "python", lock, name, reused, size, free)

    def _resolved(self, requirements: Path, python: str, build: str) -> str:
        """Return what pip would install, by name, each with its hash."""
        resolver = self._resolver(python, build)
        with tempfile.TemporaryDirectory() as scratch:
            report = Path(scratch) / "report.json"
            options = ("--dry-run", "--ignore-installed", "--report", str(report), "-r", str(requirements))
            self._pip(resolver, "install", *options, what="pip finds no packages that fit together")
            items = json.loads(report.read_text(encoding="utf-8"))["install"]
        return "".join(f"{line}\n" for line in sorted(map(_lock_line, items)))

    def _resolver(self, python: str, build: str) -> Path:
        """Return the Python of an empty environment, whose pip looks what would be installed."""
        folder = self._cache / "resolvers" / hashlib.sha256(build.encode()).hexdigest()
        with self._locked(folder.with_suffix(".lock")) as handle:
            if _mark(folder) is None:
                self._new_environment(folder, python, handle, with_pip=True)
                pip = _says(str(folder / "bin" / "python"), "import pip; print(pip.__version__)") or "0"
                _write_mark(folder, pip=pip)
        return folder / "bin" / "python"

    def _install(self, folder: Path, python: str, build: str, requirements: Path, lock: str, handle: int) -> None:
        """Make an environment and install into it what was resolved."""
        resolver = self._resolver(python, build)
        pip = (_mark(resolver.parent.parent) or {}).get("pip", "0")
        remote = tuple(int(part) for part in re.findall(r"\d+", str(pip))[:2]) >= _PIP_FOR_OTHERS
        self._new_environment(folder, python, handle, with_pip=not remote)
        own = folder / "bin" / "python"
        words = ("--python", str(own)) if remote else ()
        try:
            options = ("--no-input", "-r", str(requirements), *_pins(folder, lock))
            self._pip(
                resolver if remote else own,
                *words,
                "install",
                *options,
                what="The installation failed",
                kept=(handle,),
            )
        except EnvironmentFailedError:
            shutil.rmtree(folder, ignore_errors=True)  # it may have failed for want of space
            raise
        (folder / "lock.txt").write_text(lock, encoding="utf-8")
        _write_mark(folder, size_bytes=_size(folder))

    def _new_environment(self, folder: Path, python: str, handle: int, with_pip: bool) -> None:
        """Make an empty environment; what an older attempt left unfinished goes first."""
        if folder.exists():
            shutil.rmtree(folder)
        command = [python, "-m", "venv", *(() if with_pip else ("--without-pip",)), str(folder)]
        code, said, _ = self._said_by(command, (handle,))
        if code != 0:
            last = ([line for line in said.splitlines() if line.strip()] or [f"code {code}"])[-1]
            raise EnvironmentFailedError(f"python -m venv failed: {last}")

    def _pip(self, python: Path, *arguments: str, what: str, kept: tuple[int, ...] = ()) -> None:
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-color", *arguments]
        code, errors, output = self._said_by(command, kept)
        if code != 0:
            raise EnvironmentFailedError(f"{what}: {_reason(errors, output) or f'pip ended with code {code}'}")

    def _said_by(self, command: list[str], kept: tuple[int, ...]) -> tuple[int, str, str]:
        """Run a command; return its code, its errors and its output, which the job's own files hold as well."""
        self._output.write(f"$ {' '.join(command)}\n")
        said: list[str] = []
        with (
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            tempfile.TemporaryFile("w+", errors="replace") as output,
        ):
            try:
                code = run(command, self._deadline, output, errors, environment=without_python_settings(), kept=kept)
            finally:
                for file, own in ((errors, self._errors), (output, self._output)):
                    file.seek(0)
                    said.append(file.read())
                    own.write(said[-1])
                    own.flush()
        return code, said[0], said[1]

    @contextmanager
    def _locked(self, path: Path) -> Iterator[int]:
        """Hold a lock. What works under it keeps it open, so that it outlives a job that is killed meanwhile."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if now_s() > self._deadline:
                        raise OutOfTimeError from None
                    time.sleep(0.1)
            yield handle
        finally:
            os.close(handle)


def private_folder(folder: Path) -> None:
    """Make a folder that only this user can enter: what lies in it is run.

    Raises:
        EnvironmentFailedError: It is another user's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise EnvironmentFailedError(f"{folder} belongs to another user; name a folder of yours by {CACHE_VARIABLE}.")
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def _lock_line(item: dict[str, Any]) -> str:
    """Return name, version and hash of one package of pip's report."""
    metadata, download = item["metadata"], item["download_info"]
    archive = download.get("archive_info", {})
    hashes = archive.get("hashes") or dict([archive["hash"].split("=", 1)] if archive.get("hash") else [])
    if "dir_info" in download:  # a folder has no hash; it counts as another one when a file in it is newer
        return f"{metadata['name'].lower()}=={metadata['version']} {download['url']} {_newest(download['url'])}"
    said = " ".join(f"--hash={kind}:{value}" for kind, value in sorted(hashes.items())) or download.get("url", "")
    return f"{metadata['name'].lower().replace('_', '-')}=={metadata['version']} {said}".rstrip()


def _newest(url: str) -> float:
    """Return when a file of a folder was last changed."""
    folder = Path(urllib.request.url2pathname(urllib.parse.urlparse(url).path))
    made = re.compile(r"(^|/)(\.git|build|__pycache__|[^/]*\.egg-info)(/|$)")  # what building writes is no change
    paths = (path for path in folder.rglob("*") if not made.search(path.relative_to(folder).as_posix()))
    return max((path.lstat().st_mtime for path in paths if not path.is_dir()), default=0.0)


def _pins(folder: Path, lock: str) -> tuple[str, ...]:
    """Return the options that hold an installation to what was resolved, should the index change in between."""
    path = folder / "constraints.txt"
    lines = [line.split(" ", 1)[0] for line in lock.splitlines() if not line.startswith("#")]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ("-c", str(path))


def _reason(errors: str, output: str) -> str:
    """Return what pip says was wrong, and what contradicts what, without its advice and the file's place."""
    found = [line.strip() for line in errors.splitlines()]
    found = [line.removeprefix("ERROR: ") for line in found if line.startswith("ERROR:")]
    found = [re.sub(r"-r \S+ \(line \d+\)(,| and)? ?", "", line) for line in found if "for help visit" not in line]
    conflict = output.partition("The conflict is caused by:")[2].partition("\n\n")[0]
    found += [line.strip() for line in conflict.splitlines() if line.strip()]
    if "Retrying (" in errors:
        found.insert(0, "the package index could not be reached")
    return "; ".join(dict.fromkeys(line.rstrip(".") for line in found if line))


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _mark(folder: Path) -> dict[str, Any] | None:
    """Return what an environment's mark says; ``None`` for one that is not whole, or whose Python is gone."""
    try:
        said = json.loads((folder / _FINISHED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) and (folder / "bin" / "python").exists() else None


def _write_mark(folder: Path, **said: Any) -> None:
    partial = folder / f".{_FINISHED}"
    partial.write_text(json.dumps({**said, "made": utc_s()}), encoding="utf-8")
    partial.replace(folder / _FINISHED)
