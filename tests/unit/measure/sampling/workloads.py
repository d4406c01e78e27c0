"""Workloads that a fresh process can build."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from deep500.measure.workload import Score, Work, Workload

#: A module's text in front of its names.
HERE = "tests.unit.measure.sampling.workloads"


def quick() -> int:
    return sum(range(2000))


def fail() -> None:
    raise ValueError("no luck")


def print_much() -> None:
    print("x" * 200)
    sys.stderr.write("y\n")
    time.sleep(1e-4)


def die() -> None:
    print("last words")
    sys.stdout.flush()
    os._exit(7)


def crash() -> None:
    os.kill(os.getpid(), 11)


def fork_child() -> None:
    child = multiprocessing.get_context("fork").Process(target=abs, args=(1,))
    child.start()
    child.join()


def ask() -> None:
    sys.stdin.read()


def leave_child() -> None:
    subprocess.Popen(["sleep", "98765"])


def leave_thread() -> None:
    threading.Thread(target=time.sleep, args=(600,)).start()


def sleep_long() -> None:
    time.sleep(600)


class Described(Workload):
    """Says all that can be said of it; its data change with the process when asked to."""

    def __init__(self, changing: bool = False, seconds: float = 1e-4) -> None:
        self._seconds = seconds
        self._data_hash = f"{os.getpid() if changing else 0:064x}"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"problem": "described"}

    @property
    def factors(self) -> Mapping[str, Any]:
        return {"seconds": self._seconds, "process": "fresh", "omp": os.environ.get("OMP_NUM_THREADS")}

    @property
    def data_hash(self) -> str:
        return self._data_hash

    @property
    def work(self) -> Work:
        return Work(items=3, item="sheep")

    def run(self) -> None:
        time.sleep(self._seconds)

    def scores(self) -> list[Score]:
        return [Score("TestAccuracy", 97.5, "%", acceptable=97.0, held_out=True)]


class Unspeakable(Described):
    """Cannot say what it is."""

    @property
    def identity(self) -> Mapping[str, Any]:
        raise KeyError("identity")


class Broken(Workload):
    """Cannot be built."""

    def __init__(self) -> None:
        raise RuntimeError("no such luck")

    def run(self) -> None:
        raise AssertionError
