"""The Python interpreter: version, build and flags."""

from __future__ import annotations

import gc
import platform
import sys
import sysconfig

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["interpreter"]


def interpreter(system: System) -> dict[str, Field]:
    """Tell how the interpreter was built and started."""
    return {
        "version": Field("string", "Version.", platform.python_version),
        "implementation": Field("string", "Such as CPython.", platform.python_implementation),
        "build": Field("string", "Number and date of the build.", lambda: " ".join(platform.python_build())),
        "compiler": Field("string", "Compiler of the build.", platform.python_compiler),
        "configuration": Field("string", "Arguments of its configure.", lambda: _variable("CONFIG_ARGS")),
        "compiler_flags": Field("string", "Flags of the optimiser.", lambda: _variable("OPT")),
        "gil_enabled": Field(
            "boolean",
            "Whether a lock lets one thread run at a time.",
            lambda: getattr(sys, "_is_gil_enabled", _always)(),
        ),
        "flags": Field(
            "object",
            "Flags that it was started with.",
            lambda: {name: int(getattr(sys.flags, name)) for name in ("optimize", "dev_mode", "utf8_mode", "isolated")},
        ),
        "traced": Field(
            "boolean",
            "Whether a debugger, profiler or coverage tool listens, which slows it down.",
            lambda: sys.gettrace() is not None or sys.getprofile() is not None,
        ),
        "garbage_collector": Field(
            "object",
            "Whether it is on, and its thresholds.",
            lambda: {"enabled": gc.isenabled(), "threshold": list(gc.get_threshold())},
        ),
        "variables": Field(
            "object",
            "PYTHON... variables that change how it runs.",
            lambda: system.variables(["PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONDEVMODE", "PYTHON_GIL", "PYTHON_JIT"]),
        ),
    }


def _always() -> bool:  # interpreters before 3.13 cannot do without the lock
    return True


def _variable(name: str) -> str:
    value = sysconfig.get_config_var(name)
    if not isinstance(value, str):
        raise UnreadableError(f"this interpreter's build does not tell {name}")
    return value
