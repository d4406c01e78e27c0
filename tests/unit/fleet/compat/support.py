"""What the tests of campaigns share."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import sys
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.environments import _build, _write_mark, private_folder
from deep500.fleet.compat.matrix import Matrix
from deep500.fleet.compat.package_index import Offer
from deep500.fleet.compat.planning import plan_campaign

__all__ = ["HERE", "FakeIndex", "alive", "campaign_of", "cell", "fleet_cache", "matrix_of", "plan_of", "until"]

#: The Python that runs the tests; cells that are really run have it.
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="session")
def fleet_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for environments that all tests of one run share: an environment takes seconds to make.

    The environment that resolves gets a copy of pip from here: unpacking pip takes longer than most tests. A slow test
    makes one from nothing.
    """
    cache = tmp_path_factory.getbasetemp() / "fleet_cache"
    private_folder(cache)
    resolver = cache / "resolvers" / hashlib.sha256(_build(sys.executable).encode()).hexdigest()
    if not resolver.exists():
        venv.create(resolver)
        # Not imported: in a process that has imported pip, setuptools (and PyTorch's compiler with it) does not work.
        pip = importlib.metadata.distribution("pip")
        shutil.copytree(pip.locate_file("pip"), next(resolver.glob("lib/python*/site-packages")) / "pip")
        _write_mark(resolver, pip=pip.version)
    return cache


class FakeIndex:
    """Answers without pip."""

    def __init__(self, offers: dict[tuple[str, str], Offer]) -> None:
        self.offers = offers
        self.asked: list[tuple[str, str]] = []

    def offer(self, distribution: str, python: str, options: Sequence[str] = (), pre: bool = False) -> Offer:
        self.asked.append((distribution, python))
        return self.offers.get((distribution, python), Offer(()))


def cell(**changes: Any) -> Cell:
    fields: dict[str, Any] = {
        "framework": "fleetalpha",
        "version": "1.0",
        "python": "3.11",
        "module": "fleetalpha",
        "requirements": ("fleetalpha==1.0",),
        "timeout_s": 5.0,
        "environment_timeout_s": 60.0,
    }
    return Cell(**{**fields, **changes})


def matrix_of(folder: Path, text: str) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_text(text, encoding="utf-8")
    return Matrix.read(path)


def plan_of(folder: Path, text: str, **options: Any) -> Campaign:
    return plan_campaign(matrix_of(folder, text), folder / "campaign", offline=True, **options)


def campaign_of(folder: Path, *cells: Cell) -> Campaign:
    made = Campaign(folder / "campaign", "november", 1.7e9, {"frameworks": {}}, "0" * 64, tuple(cells), (), {})
    made.write()
    return made


def until(holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.1)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody asked for does not."""
    if os.name == "posix" and psutil.pid_exists(pid):
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
    return False
