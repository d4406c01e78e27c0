"""Looking, while a test runs, at which GPUs it and the processes that it starts hold."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from typing import Any

import psutil

__all__ = ["RANK_VARIABLES", "GpuWatch"]

#: What launchers tell each process: its number among those of one machine, else among all.
RANK_VARIABLES = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
    "PMIX_RANK",
    "PMI_RANK",
    "RANK",
)

#: So often the processes are looked at; so often the driver is asked, which takes longer.
_INTERVAL_S = 0.05
_DRIVER_EVERY = 10

_DRIVER_TIMEOUT_S = 10


class GpuWatch:
    """A thread that looks at a process and at all that it started, until it is stopped.

    It sees the numbers that launchers give to ranks in the variables with which a process *begins*, and the processes
    that NVIDIA's driver says hold a GPU. It does not see ranks that live shorter than 50 ms, ranks that set their
    number themselves (forked workers), threads, and processes that detach; nor, in a container, processes that the
    driver knows by other numbers.

    Attributes:
        ranks: The numbers of ranks that were seen.
        devices: The GPUs that were seen held by the process itself and by others, ``(device, is_own)``.
    """

    def __init__(self) -> None:
        """Prepare to look at this process."""
        self.ranks: set[str] = set()
        self.devices: set[tuple[str, bool]] = set()
        self._root = psutil.Process()
        # A launcher may have started this process, too: what all inherit from it says nothing.
        self._variables = [name for name in RANK_VARIABLES if name not in os.environ]
        self._driver = shutil.which("nvidia-smi")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="deep500-gpu-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look a last time, and end."""
        self._stopped.set()
        self._thread.join(2 * _DRIVER_TIMEOUT_S)

    def _watch(self) -> None:
        turn = 0
        while not self._stopped.wait(_INTERVAL_S):
            turn += 1
            self._look(ask_driver=turn % _DRIVER_EVERY == 0)
        self._look(ask_driver=True)

    def _look(self, ask_driver: bool) -> None:
        with contextlib.suppress(psutil.Error):
            processes = self._root.children(recursive=True)
            for process in processes:
                with contextlib.suppress(psutil.Error, OSError):  # it has ended meanwhile
                    self._take_rank(process.environ())
            if ask_driver and self._driver is not None:
                self._take_devices({process.pid for process in processes})

    def _take_rank(self, environment: dict[str, Any]) -> None:
        for name in self._variables:
            number = environment.get(name)
            if number is not None:
                self.ranks.add(str(number))
                return

    def _take_devices(self, started: set[int]) -> None:
        command = [str(self._driver), "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=_DRIVER_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return
        for line in said.stdout.splitlines():
            device, _, process = line.partition(",")
            if process.strip().isdecimal():
                number = int(process)
                if number == self._root.pid or number in started:
                    self.devices.add((device.strip(), number == self._root.pid))
