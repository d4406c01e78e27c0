"""A result file is the old one or the new one, whenever the process that writes it is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

#: Writes two measurements in turn in a process that is killed at a random moment, again and again.
KILLED = """
import json, os, random, signal, sys, time
from pathlib import Path
from deep500.measure.results import files
from tests.unit.measure.results.support import measurement, rows, system

def planted(path, content, what):
    with open(path, "w") as file:
        for start in range(0, len(content), 4096):
            file.write(content[start : start + 4096])
            file.flush()
            time.sleep(0)

path, rounds, is_planted = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "planted"
if is_planted:
    files.write_atomically = planted
versions = [measurement(system(rows(seed=seed, launches=10, samples=1000 + seed))) for seed in (0, 500)]
files.write_measurement(versions[0], path)
longest_s = 0.0
for version in versions:
    started = time.perf_counter()
    files.write_measurement(version, path)
    longest_s = max(longest_s, time.perf_counter() - started)
random.seed(0)
found = {"old": 0, "new": 0, "broken": 0, "bytes": path.stat().st_size}
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        while True:
            for version in versions:
                files.write_measurement(version, path)
    time.sleep(random.uniform(0, 4 * longest_s))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found[{0: "old", 1: "new"}[versions.index(files.read_measurement(path))]] += 1
    except Exception as error:
        found["broken"] += 1
found["partial"] = len(list(path.parent.glob(".*.partial")))
print(json.dumps(found))
"""


def killed(folder: Path, rounds: int, writer: str) -> dict[str, int]:
    command = [sys.executable, "-c", KILLED, str(folder / "result.json"), str(rounds), writer]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    found: dict[str, int] = json.loads(result.stdout)
    return found


def test_killed_at_any_moment_there_is_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    found = killed(tmp_path, 60, "own")

    assert found["broken"] == 0
    assert found["old"] + found["new"] == 60
    assert found["bytes"] > 200_000


def test_planted_writer_that_is_not_atomic_is_caught(tmp_path: Path) -> None:
    assert killed(tmp_path, 30, "planted")["broken"] > 0
