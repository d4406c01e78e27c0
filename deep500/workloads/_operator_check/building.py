"""The first step of a check: an operator is compiled, and says what it is."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deep500.core.quantities import scaled
from deep500.measure.clock import Stopwatch
from deep500.operators.custom import CustomOp, NativeOp
from deep500.operators.native.library import Which
from deep500.workloads._operator_check.operator_file import OperatorFile

__all__ = ["Build", "BuildClock", "build"]

#: The functions of a library that an operator may have.
_FUNCTIONS: tuple[Which, ...] = ("forward", "backward", "second")


@dataclass(frozen=True)
class Build:
    """What an operator is.

    Attributes:
        language: ``"Python"``, or ``"C++"`` or ``"CUDA"`` by the compiler that was used.
        inputs: Number of inputs; ``None`` for any.
        outputs: Number of outputs.
        attributes: Values of its attributes.
        differentiable: Whether it has a backward.
        compiled: Whether it was compiled now; ``None`` where there is nothing to compile.
        time_s: How long compiling, or finding and loading the library, took.
        compiler: What the compiler says that it is.
        dtypes: The dtypes that it was compiled for.
        devices: Where it runs.
        symbols: The functions that its library exports.
        library: The library's path.
        note: What to know about it; empty for nothing.
    """

    language: str
    inputs: int | None
    outputs: int
    attributes: Mapping[str, Any]
    differentiable: bool
    compiled: bool | None = None
    time_s: float | None = None
    compiler: str = ""
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    library: str = field(default="", compare=False)
    note: str = ""

    def __str__(self) -> str:
        """Return it in one line."""
        if self.compiled is None or self.time_s is None:
            return "Python, nothing to compile" + ("" if self.differentiable else "; no backward")
        how = f"compiled in {scaled('s', self.time_s)[0]}" if self.compiled else "from the cache"
        functions = ", ".join(symbol.rpartition("_")[2] for symbol in self.symbols)
        return (
            f"{self.language}, {how} ({self.compiler}); {', '.join(self.dtypes) or 'fixed dtypes'} on "
            f"{', '.join(self.devices)}; functions: {functions}" + (f"; {self.note}" if self.note else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "attributes": dict(self.attributes)}


class BuildClock:
    """Tells libraries that were compiled since it was made from those of before."""

    def __init__(self) -> None:
        """Take the time that files get now."""
        with tempfile.NamedTemporaryFile() as file:
            self._start_ns = Path(file.name).stat().st_mtime_ns

    def is_new(self, library: Path) -> bool:
        """Whether a library was compiled since."""
        return library.stat().st_mtime_ns >= self._start_ns


def build(file: OperatorFile, name: str, attributes: Mapping[str, Any], clock: BuildClock) -> tuple[CustomOp, Build]:
    """Compile an operator where that was not done before, and return it and what it says of itself.

    Args:
        file: The file that it is in.
        name: Its name there.
        attributes: Values of its attributes.
        clock: Made before anything was compiled.

    Raises:
        CompileError: It does not compile.
        OperatorError: Its library lacks a function, or it does not take the attributes.
    """
    watch = Stopwatch()
    op = file.open(name, attributes)
    common: dict[str, Any] = {"inputs": op.input_count, "outputs": op.output_count, "attributes": op.attributes}
    common["differentiable"] = op.differentiable
    if not isinstance(op, NativeOp):
        return op, Build("Python", **common)
    library, elapsed_s = op.library, watch.elapsed_s()
    said = library.description
    return op, Build(
        language="CUDA" if "cuda" in said.devices else "C++",
        **common,
        compiled=clock.is_new(library.path),
        time_s=elapsed_s,
        compiler=_compiler(library.path),
        dtypes=tuple(said.dtypes),
        devices=tuple(said.devices),
        symbols=tuple(library.symbol_name(which) for which in _FUNCTIONS if library.has(which)),
        library=str(library.path),
        note=file.note,
    )


def _compiler(library: Path) -> str:
    """Return what was noted beside a library when it was built; it may have come from elsewhere."""
    try:
        noted: Any = json.loads((library.parent / "built.json").read_bytes())
        return str(noted["compiler"])
    except (OSError, ValueError, KeyError, TypeError):
        return "compiler unknown"
