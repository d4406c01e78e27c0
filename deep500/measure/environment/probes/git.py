"""State of the sources: commits, and whether they were changed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["git"]

_PACKAGE = Path(__file__).resolve().parents[3]


def git(system: System) -> dict[str, Field]:
    """Tell the commit of the working folder, and that of Deep500 where it runs from a checkout."""
    here = functools.cache(lambda: _state(system, Path.cwd()))
    own = functools.cache(lambda: _deep500_state(system))
    return {
        "commit": Field("string", "Commit of the working folder.", lambda: here()["commit"]),
        "branch": Field("string", "Its branch, or (detached).", lambda: here()["branch"]),
        "dirty": Field("boolean", "Whether files that git tracks differ from the commit.", lambda: here()["dirty"]),
        "deep500_commit": Field("string", "Commit of Deep500's checkout.", lambda: own()["commit"]),
        "deep500_dirty": Field("boolean", "Whether its files differ from the commit.", lambda: own()["dirty"]),
    }


def _deep500_state(system: System) -> dict[str, Any]:
    # A virtual environment may lie inside somebody else's repository, whose commit would say nothing of Deep500.
    try:
        system.run("git", "ls-files", "--error-unmatch", "__init__.py", folder=_PACKAGE)
    except UnreadableError as error:
        raise UnreadableError(f"Deep500 does not run from a checkout of its own ({error})") from error
    return _state(system, _PACKAGE)


def _state(system: System, folder: Path) -> dict[str, Any]:
    """Ask git in one call; untracked files are left out, since looking for them may take seconds."""
    options = ("--no-optional-locks", "-c", "core.fsmonitor=false")
    output = system.run(
        "git", *options, "status", "--porcelain=v2", "--branch", "--untracked-files=no", folder=folder
    ).splitlines()
    header = dict(line[2:].split(" ", 1) for line in output if line.startswith("# branch.") and line.count(" ") >= 2)
    commit = header.get("branch.oid", "(initial)")
    if commit == "(initial)":
        raise UnreadableError("the repository has no commit yet")
    return {
        "commit": commit,
        "branch": header.get("branch.head", "(detached)"),
        "dirty": any(not line.startswith("#") for line in output),
    }
