"""``deep500 run RECIPE --ranks 3 --on-failure shrink``: ranks are killed, and the others come to the verdict.

It needs an Open MPI with fault tolerance, see :mod:`tests.conformance.test_survivors`.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import survivor_recipe
from tests.conformance.rank_processes import run_ranks
from tests.conformance.test_survivors import PYTHON, VARIABLES, left_over, why_not
from tests.unit.recipe.support import check_schema

pytestmark = pytest.mark.slow

SECONDS = 120

#: One epoch has 600 samples, of which a step takes 24.
SAMPLES, BATCH, EPOCHS = 600, 24, 3


def command(*options: str, ranks: int = 3) -> list[str]:
    recipe = str(Path(survivor_recipe.__file__))
    return [PYTHON, "-m", "deep500", "run", recipe, "--ranks", str(ranks), *options]


def run(
    *options: str, fault: str = "", ranks: int = 3, out: Path | None = None, shrinks: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run the recipe; nothing of it is left."""
    if why_not():
        pytest.skip(f"No Open MPI with ULFM: {why_not()}.")
    more = {"FAULT": fault, **({} if out is None else {"OUT": str(out)})}
    how = ["--on-failure", "shrink"] if shrinks else []
    try:
        return run_ranks(command(*how, *options, ranks=ranks), {**VARIABLES, **more}, SECONDS)
    finally:
        assert not left_over(Path(survivor_recipe.__file__).name)


def result_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    check_schema(content)
    return content


@pytest.mark.parametrize(
    ("fault", "lost", "step", "samples_lost"),
    [
        ("SIGKILL:built:0:0", [0], 0, 0),
        ("SIGKILL:begin:0:0", [0], 0, 0),
        ("SIGKILL:before_step:30:1", [1], 30, 8),
        ("SIGKILL:before_step:30:0", [0], 30, 8),
        ("SIGKILL:after_step:30:2", [2], 31, 8),
        ("exception:before_step:30:0", [0], 30, 8),
        ("exception:before_step:30:1", [1], 30, 8),
        ("exit:test:50:0", [0], 50, 0),
        ("SIGKILL:test:50:1", [1], 50, 0),
        ("SIGKILL:end:75:0", [0], 75, 0),
    ],
)
def test_the_others_come_to_the_verdict(
    fault: str, lost: list[int], step: int, samples_lost: int, tmp_path: Path
) -> None:
    output = tmp_path / "result.json"
    finished = run("--output", str(output), fault=fault)

    said = finished.stdout.splitlines()
    assert finished.returncode == 0, finished.stderr
    assert said.count("PASSED") == 1
    assert said[0].startswith("Recipe survivor_recipe")  # by the first rank, before it was lost unless at the begin
    assert [line for line in said if line.startswith("The result")] == said[-1:] == [f"The result is in {output}"]
    assert not any("incomplete" in line for line in said)
    assert f"Rank {lost[0]} failed; 2 ranks go on" in finished.stderr
    assert f"Rank {lost[0]} of 3 " in finished.stderr
    assert ("planted on purpose" in finished.stderr) == fault.startswith("exception")
    result = result_of(output)
    assert result["passed"]
    (loss,) = result["ranks"]["losses"]
    assert (loss["lost"], loss["survivors"]) == (lost, [rank for rank in range(3) if rank not in lost])
    assert (loss["step"], loss["batch_size"], loss["samples_lost"], loss["warnings"]) == (step, BATCH, samples_lost, [])
    assert result["ranks"]["count"] == 2
    assert result["ranks"]["communicator"] == "ULFMCommunicator"
    assert result["statistics"]["samples"] == EPOCHS * SAMPLES - samples_lost
    assert [epoch["test"]["samples"] for epoch in result["statistics"]["epochs"]] == [1197] * EPOCHS


def test_two_of_three_ranks_are_lost_and_the_last_one_trains_alone(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    finished = run("--output", str(output), fault="SIGKILL:before_step:20:0,SIGKILL:before_step:40:1")

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines().count("PASSED") == 1
    result = result_of(output)
    assert [(loss["step"], loss["lost"], loss["samples_lost"]) for loss in result["ranks"]["losses"]] == [
        (20, [0], 8),
        (40, [1], 12),
    ]
    assert result["ranks"]["count"] == 1
    assert result["statistics"]["samples"] == EPOCHS * SAMPLES - 20


def test_two_ranks_are_lost_in_the_same_step(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    finished = run("--output", str(output), fault="SIGKILL:before_step:20:0,SIGKILL:before_step:20:1")

    assert finished.returncode == 0, finished.stderr
    losses = result_of(output)["ranks"]["losses"]
    assert {rank for loss in losses for rank in loss["lost"]} == {0, 1}
    assert sum(loss["samples_lost"] for loss in losses) == 16


def test_without_a_fault_it_is_the_training_of_the_mpi_communicator_bit_for_bit(tmp_path: Path) -> None:
    found = {}
    for name, shrinks in (("ulfm", True), ("mpi", False)):
        output = tmp_path / f"{name}.json"
        finished = run("--output", str(output), out=tmp_path / name, shrinks=shrinks)
        assert finished.returncode == 0, finished.stderr
        result = result_of(output)
        assert result["ranks"]["losses"] == []
        passes = [
            {key: value for key, value in epoch[kind].items() if key != "duration_s"}
            for epoch in result["statistics"]["epochs"]
            for kind in ("training", "test")
        ]
        parameters = [Path(f"{tmp_path / name}.{rank}").read_bytes() for rank in range(3)]
        found[name] = passes, parameters, result["metrics"], result["first_epoch_batches_hash"]
    assert found["ulfm"] == found["mpi"]
    assert len(set(found["ulfm"][1])) == 1


def test_a_minibatch_that_does_not_divide_and_a_training_that_goes_on_with_the_ranks_that_are_left(
    tmp_path: Path,
) -> None:
    """Minibatches of 27 samples are of 26 once there are two ranks; those two go on bit for bit later."""
    fault, more = "SIGKILL:before_step:10:0", ("--set", "batch_size=27", "--checkpoint-every", "5steps")
    whole = run(*more, "--checkpoint", str(tmp_path / "w"), fault=fault, out=tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert "cannot be dealt out to 2 ranks evenly; from here on it has 26" in whole.stderr
    broken = run(
        *more,
        *("--checkpoint", str(tmp_path / "c")),
        fault=f"{fault},SIGKILL:before_step:33:1,SIGKILL:before_step:33:2",
    )
    assert broken.returncode != 0
    output = tmp_path / "result.json"
    again = run(*more, "--resume", str(tmp_path / "c"), "--output", str(output), ranks=2, out=tmp_path / "again")

    assert again.returncode == 0, again.stderr
    expected = Path(f"{tmp_path / 'whole'}.1").read_bytes()
    assert [Path(f"{tmp_path / 'again'}.{rank}").read_bytes() for rank in range(2)] == [expected] * 2
    result = result_of(output)
    (loss,) = result["ranks"]["losses"]
    assert (loss["lost"], loss["step"], loss["batch_size"], loss["samples_lost"]) == ([0], 10, 26, 9)
    assert result["resumed"][0]["step"] == 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--communicator", "mpi"), "deep500[ulfm]"),
        (("--set", "distributed=stale_synchronous"), "lets ranks be in different steps"),
        (("--set", "batch_size=25"), "multiple of 3"),
    ],
)
def test_what_cannot_go_on_is_refused_once(options: tuple[str, ...], said: str) -> None:
    finished = run(*options)

    assert finished.returncode == 2
    assert finished.stderr.count(said) == 1, finished.stderr


def test_a_mistake_of_all_ranks_is_told_once() -> None:
    finished = run(fault=",".join(f"exception:before_step:3:{rank}" for rank in range(3)))

    assert finished.returncode == 2
    assert finished.stderr.count("planted on purpose") == 1, finished.stderr


def test_a_signal_to_end_is_no_failure_of_a_rank(tmp_path: Path) -> None:
    """SIGTERM makes all ranks write a checkpoint and leave, with the launcher's code."""
    if why_not():
        pytest.skip(f"No Open MPI with ULFM: {why_not()}.")
    folder, slow = tmp_path / "c", tmp_path / "slow"
    process = subprocess.Popen(
        command("--on-failure", "shrink", "--checkpoint", str(folder), "--checkpoint-every", "10steps"),
        env={**VARIABLES, "FAULT": "slow:before_step:15:0", "SLOW": str(slow)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + SECONDS
        while not slow.exists() and time.monotonic() < until:  # else it may come while the one of step 10 is written
            time.sleep(0.05)
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode in (-15, 143), errors
    assert "failed; " not in errors
    newest = max(json.loads(path.read_text())["step"] for path in folder.glob("step-*/manifest.json"))
    assert newest in (15, 16)
    assert not left_over(Path(survivor_recipe.__file__).name)
