"""Finding a compiler, telling one from another without running it, and the command lines."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deep500.core.errors import CompileError

__all__ = ["Compiler", "find_compiler", "gpu_identity", "processor_identity"]

#: Environment variable that names the C++ compiler, and the names that are tried without it.
CXX_VARIABLE, CXX_NAMES = "CXX", ("g++", "clang++", "c++")

#: Environment variable that names the CUDA compiler.
NVCC_VARIABLE = "NVCC"

#: Variables of the environment that change what a compiler does.
_INFLUENCES = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")

#: Lines of /proc/cpuinfo that tell which instructions a processor has.
_PROCESSOR_LINES = (
    "vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU architecture", "CPU part", "isa",
)  # fmt: skip


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found.

    Attributes:
        command: How it is called.
        cuda: Whether it is nvcc.
        host_command: The C++ compiler that nvcc is to use; empty for its own choice, and for C++ compilers.
    """

    command: tuple[str, ...]
    cuda: bool = False
    host_command: tuple[str, ...] = ()

    def identity(self) -> tuple[str, ...]:
        """Return texts that change when the compiler does; it is not run, which would take too long."""
        texts = [*self.command, *self.host_command]
        for command in filter(None, (self.command, self.host_command)):
            # A wrapper such as ccache stays the same when the compiler behind it is replaced.
            for word in command:
                path = Path(os.path.realpath(shutil.which(word) or word))
                if path.is_file():
                    state = path.stat()
                    texts.append(f"{path}:{state.st_mtime_ns}:{state.st_size}")
        return (*texts, *(f"{name}={os.environ[name]}" for name in _INFLUENCES if name in os.environ))

    def object_command(
        self,
        source: Path,
        target: Path,
        dependencies: Path,
        *,
        flags: Sequence[str],
        definitions: Mapping[str, object],
        include: Path,
        native: bool,
    ) -> list[str]:
        """Return the command that compiles one source and writes the names of what it includes."""
        # Hidden symbols: else all libraries of a process would share the static variables of equal templates.
        host = ["-fPIC", "-fvisibility=hidden", "-fopenmp", *(["-march=native"] if native else [])]
        if self.cuda:
            host_compiler = [f"-ccbin={self.host_command[0]}"] if self.host_command else []
            language = [] if source.suffix == ".cu" else ["-x", "cu"]
            arch = ["-arch=native"] if gpu_identity() else []
            own = [*language, *host_compiler, *arch, "--expt-relaxed-constexpr", "-Xcompiler", ",".join(host)]
        else:
            own = [*host, "-fmax-errors=5"]
        macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in definitions.items()]
        return [
            *self.command, "-std=c++17", "-O3", *own, f"-I{include}", *macros, *flags,
            "-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(target),
        ]  # fmt: skip

    def is_own_header(self, path: Path) -> bool:
        """Whether a header comes with the compiler and changes only with it; nvcc lists dozens of them."""
        if not self.cuda:
            return False
        return Path(os.path.realpath(shutil.which(self.command[0]) or "/nvcc")).parent.parent in path.parents

    def link_command(
        self, objects: Sequence[Path], target: Path, flags: Sequence[str], link_flags: Sequence[str]
    ) -> list[str]:
        """Return the command that makes a shared library of compiled sources; ``flags`` are those they had."""
        own = ["-Xcompiler", "-fPIC,-fopenmp"] if self.cuda else ["-fPIC", "-fopenmp"]
        host_compiler = [f"-ccbin={self.host_command[0]}"] if self.cuda and self.host_command else []
        return [
            *self.command,
            *host_compiler,
            "-shared",
            *own,
            *flags,
            *map(str, objects),
            "-o",
            str(target),
            *link_flags,
        ]


def find_compiler(*, cuda: bool = False) -> Compiler:
    """Return the compiler that the environment names, or the first that is installed.

    Args:
        cuda: Look for nvcc.

    Raises:
        CompileError: There is none; the message says what to install.
    """
    if not cuda:
        return Compiler(_named(CXX_VARIABLE) or _installed(CXX_NAMES) or _no_cpp_compiler())
    return Compiler(_named(NVCC_VARIABLE) or _installed_nvcc(), True, _named(CXX_VARIABLE) or ())


def _named(variable: str) -> tuple[str, ...] | None:
    """Return the command that a variable of the environment holds."""
    value = os.environ.get(variable, "")
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        raise CompileError(f"The variable {variable} is {value!r}, which is no command: {error}.") from error
    if not words:
        return None
    if shutil.which(words[0]) is None:
        raise CompileError(
            f"The variable {variable} names the compiler {words[0]!r}, which was not found. Name another one, or unset "
            f"the variable."
        )
    return words


def _installed(names: Sequence[str]) -> tuple[str, ...] | None:
    return next(((found,) for found in map(shutil.which, names) if found), None)


def _no_cpp_compiler() -> tuple[str, ...]:
    raise CompileError(
        f"Compiling an operator needs a C++ compiler, and none of {', '.join(CXX_NAMES)} was found. Install g++ "
        f"(Debian, Ubuntu: 'apt install g++'; Fedora: 'dnf install gcc-c++'; conda: 'conda install gxx'), or name a "
        f"compiler in the variable {CXX_VARIABLE}."
    )


def _installed_nvcc() -> tuple[str, ...]:
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [*(Path(home) / "bin" for home in homes), None, Path("/usr/local/cuda/bin")]
    for place in places:
        found = shutil.which("nvcc", path=None if place is None else str(place))
        if found:
            return (found,)
    raise CompileError(
        "Compiling a CUDA operator needs nvcc, which was found neither on the PATH nor in CUDA_HOME nor in "
        "/usr/local/cuda. Install NVIDIA's CUDA toolkit, or name the compiler in the variable NVCC."
    )


def processor_identity() -> str:
    """Return a text that differs between processors for which ``-march=native`` means different instructions."""
    lines = []
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break  # the first core is enough, and with hundreds the whole file takes milliseconds
                if line.split(":")[0].strip() in _PROCESSOR_LINES:
                    lines.append(line.strip())
    except OSError:  # not Linux
        lines = [platform.processor(), platform.version()]
    return "\n".join([platform.machine(), *lines])


def gpu_identity() -> str:
    """Return the models of NVIDIA's GPUs in this machine; empty where there are none."""
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        text = path.read_text(encoding="utf-8", errors="replace")
        models += [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("Model")]
    return ",".join(sorted(set(models)))
