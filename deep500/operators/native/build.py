"""Compiling C++ and CUDA sources into shared libraries, each combination of sources, flags and compiler once."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import CompileError
from deep500.core.texts import shown_path
from deep500.operators.custom._checks import check_name
from deep500.operators.native._cache import cache_folder, digest, find_cached, locked, private_folder, record
from deep500.operators.native._compiler import Compiler, find_compiler, gpu_identity, processor_identity
from deep500.operators.native._diagnostics import compile_error
from deep500.operators.native.library import ABI_VERSION

__all__ = ["compile_library", "include_folder"]

_LOGGER = logging.getLogger(__name__)

#: Beginning of the names of folders in which something is being compiled.
_WORK = ".work-"


def include_folder() -> Path:
    """Return the folder of the C++ headers, which a source includes as ``<deep500/deep500.h>``."""
    return Path(__file__).resolve().parents[3] / "native_ops" / "include"


def compile_library(
    sources: Sequence[str | PathLike[str]],
    name: str,
    *,
    headers: Sequence[str | PathLike[str]] = (),
    flags: Sequence[str] = (),
    cuda: bool = False,
    definitions: Mapping[str, object] | None = None,
    link_flags: Sequence[str] = (),
    depends_on: Sequence[str] = (),
    native: bool = True,
    folder: str | PathLike[str] | None = None,
    timeout_s: float = 900.0,
    verbose: bool = False,
    keep: bool = False,
) -> Path:
    """Compile sources into a shared library, or return the one that was compiled before.

    The flags are ``-std=c++17 -O3 -march=native -fopenmp``; numbers are never computed less exactly (no
    ``-ffast-math``). A library is compiled anew when a source, a header that it includes, a flag, the compiler or the
    processor has changed. Several processes that ask for one library compile it once.

    Args:
        sources: The sources.
        name: Name of the operator, a C identifier; the library's file is named for it.
        headers: Further files on which the result depends. Those that the sources include are found by themselves,
            except those of folders given by ``-isystem``.
        flags: Further flags of the compiler; they come after Deep500's own, so ``-std=c++20`` or ``-O0`` win.
        cuda: Compile by nvcc; sources that end in ``.cu`` imply it.
        definitions: Macros, by name; ``None`` for one without a value.
        link_flags: Flags after the sources, such as ``-lfoo``.
        depends_on: Texts on which the result depends, such as the version of a framework whose headers are included.
        native: Optimise for this machine's processor (``-march=native``).
        folder: Where the library goes; by default the one that the environment variable ``DEEP500_NATIVE_CACHE``
            names, else the user's cache.
        timeout_s: Seconds after which the compiler is stopped, and for which another process is waited for.
        verbose: Log the commands and what the compiler says, as warnings: they are seen also where it succeeds.
        keep: Leave the compiled objects beside the library.

    Returns:
        The path of the library.

    Raises:
        CompileError: There is no compiler, it refuses the sources, it takes too long, or the library cannot be kept.
    """
    paths = [Path(source).absolute() for source in ([sources] if isinstance(sources, (str, PathLike)) else sources)]
    compiler = find_compiler(cuda=cuda or any(path.suffix == ".cu" for path in paths))
    further = [Path(header).absolute() for header in headers]
    build = _Build(name, paths, further, compiler, tuple(flags), dict(definitions or {}), tuple(link_flags), native)
    return _built(build, cache_folder(folder) / f"{name}-{build.key(depends_on)[:20]}", timeout_s, verbose, keep)


def _built(build: _Build, entry: Path, timeout_s: float, verbose: bool, keep: bool) -> Path:
    """Return the library of an entry of the cache, built now where it is missing or out of date."""
    try:
        private_folder(entry)
        found = find_cached(entry)
        if found is None:
            with locked(entry, timeout_s):
                found = find_cached(entry)  # by whoever had the lock before
                if found is None:
                    found = build.into(entry, timeout_s, verbose=verbose, keep=keep)
    except OSError as error:
        raise CompileError(f"The operator {build.name!r} cannot be compiled: {error}") from error
    return found


class _Build:
    """What is compiled, and how."""

    def __init__(
        self,
        name: str,
        sources: Sequence[Path],
        headers: Sequence[Path],
        compiler: Compiler,
        flags: tuple[str, ...],
        definitions: dict[str, object],
        link_flags: tuple[str, ...],
        native: bool,
    ) -> None:
        check_name(name)
        if not sources:
            raise CompileError(f"The operator {name!r} has no source; accepted is at least one .cpp or .cu file.")
        self.name, self.sources, self.headers, self.compiler = name, sources, headers, compiler
        self.flags, self.definitions, self.link_flags, self.native = flags, definitions, link_flags, native

    def key(self, depends_on: Sequence[str]) -> str:
        """Return a hash of all that the library depends on and that is known without compiling."""
        parts: list[str | bytes] = [str(ABI_VERSION), self.name, str(include_folder())]
        for path in [*self.sources, *self.headers]:
            try:
                parts += [str(path), path.read_bytes()]
            except OSError as error:
                raise CompileError(
                    f"The operator {self.name!r} cannot be compiled: {shown_path(path)} cannot be read: "
                    f"{error.strerror}."
                ) from error
        parts += [repr(part) for part in (self.flags, sorted(self.definitions.items()), self.link_flags, self.native)]
        parts += [*depends_on, *self.compiler.identity()]
        parts.append(processor_identity() if self.native else "any processor")
        parts.append(gpu_identity() if self.compiler.cuda else "no GPU")
        return digest(*parts)

    def into(self, entry: Path, timeout_s: float, *, verbose: bool, keep: bool) -> Path:
        """Compile into an entry of the cache; its lock is held."""
        for left in entry.glob(f"{_WORK}*"):  # by a process that was killed: this one has the lock
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=_WORK, dir=entry))
        try:
            library, dependencies = self._compile(work, timeout_s, verbose)
            version = _run([*self.compiler.command, "--version"], work, timeout_s)[1].splitlines()
            installed = record(
                entry, library, self.name, dependencies, compiler=version[-1 if self.compiler.cuda else 0]
            )
            if keep:
                os.replace(work, entry / f"objects-{installed.stem}")
            return installed
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _compile(self, work: Path, timeout_s: float, verbose: bool) -> tuple[Path, list[Path]]:
        stems = [work / f"{index}-{source.stem}" for index, source in enumerate(self.sources)]
        objects = [stem.with_name(stem.name + ".o") for stem in stems]
        lists = [stem.with_name(stem.name + ".d") for stem in stems]
        settings: dict[str, Any] = {"flags": self.flags, "definitions": self.definitions, "native": self.native}
        commands = [
            self.compiler.object_command(source, target, listed, include=include_folder(), **settings)
            for source, target, listed in zip(self.sources, objects, lists)
        ]
        library = work / f"{self.name}.so"
        if len(commands) == 1:
            self._run(commands[0], work, timeout_s, verbose)
        else:
            with ThreadPoolExecutor(min(len(commands), os.cpu_count() or 1)) as pool:
                list(pool.map(lambda command: self._run(command, work, timeout_s, verbose), commands))
        self._run(self.compiler.link_command(objects, library, self.flags, self.link_flags), work, timeout_s, verbose)
        dependencies = {path for text in lists for path in _listed(text) if not self.compiler.is_own_header(path)}
        return library, sorted(dependencies - {source.resolve() for source in self.sources})

    def _run(self, command: Sequence[str], work: Path, timeout_s: float, verbose: bool) -> None:
        status, output = _run(command, work, timeout_s)
        if verbose:
            _LOGGER.warning("%s\n%s", shlex.join(command), output)
        if status != 0:
            raise compile_error(self.name, [*self.sources, *self.headers], command, output)


def _run(command: Sequence[str], work: Path, timeout_s: float) -> tuple[int, str]:
    """Run a command; return its status and all that it said. It is stopped, with all that it started, after a time."""
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(work)}
    with subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a compiler is several processes
        text=True,
        errors="replace",
    ) as process:
        try:
            output = process.communicate(timeout=timeout_s)[0]
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CompileError(
                    f"The compiler was stopped after {timeout_s:g} s. Command: {shlex.join(command)}", command
                ) from error
            raise
    return process.returncode, output


def _listed(file: Path) -> list[Path]:
    """Return the files that a compiler wrote into a list of dependencies, in the form of make."""
    text = file.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    names = text.split(": ", 1)[-1]
    found = re.findall(r"(?:\\.|[^\s\\])+", names)
    return [Path(file.parent, re.sub(r"\\(.)", r"\1", name).replace("$$", "$")).resolve() for name in found]
