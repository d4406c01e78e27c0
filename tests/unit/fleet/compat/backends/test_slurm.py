"""SLURM without SLURM: commands that say what a real one said; tests/conformance/test_slurm.py has a real one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.backends._slurm_commands import _FIELDS
from deep500.fleet.compat.backends.slurm import SlurmBackend
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.running import outcomes_now, plan_run, run_campaign
from tests.unit.fleet.compat.support import campaign_of, cell

#: A SLURM that takes everything: it answers from files of its folder and writes down what it was asked.
FAKE = """#!/bin/sh
cd {folder}
echo "$(basename "$0") $*" >> asked
case $(basename "$0") in
    sbatch) [ ! -e refuses ] || {{ cat refuses >&2; exit 1; }}
        echo x >> numbers; wc -l < numbers ;;
    squeue) [ ! -e down ] || {{ cat down >&2; exit 1; }}
        cat queue 2>/dev/null || true ;;
    sacct) [ -e accounts ] || {{ echo 'Slurm accounting storage is disabled' >&2; exit 1; }}
        cat accounts ;;
esac
"""


class FakeSlurm:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sbatch", "squeue", "sacct"):
            path = folder / "bin" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FAKE.format(folder=shlex.quote(str(folder))))
            path.chmod(0o755)

    def says(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text)

    def forgets(self, file: str) -> None:
        (self.folder / file).unlink(missing_ok=True)

    def queue(self, *lines: tuple[Any, ...]) -> None:
        widths = [width for _, width in _FIELDS]
        self.says("queue", "".join("".join(f"{v!s:<{w}}" for v, w in zip(line, widths)) + "\n" for line in lines))

    def asked(self, command: str) -> int:
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return sum(1 for line in lines if line.startswith(command))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    made = FakeSlurm(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{made.folder}/bin:{os.environ['PATH']}")
    return made


def name_of(made: Campaign, number: int = 0) -> str:
    arrays = json.loads((made.scheduler_folder / "slurm.json").read_text())["arrays"]
    return str(arrays[number]["name"])


def run(made: Campaign, **options: str) -> Campaign:
    return run_campaign(made, "slurm", {"collect": "no", **{name.replace("_", "-"): v for name, v in options.items()}})[
        0
    ]


def states(made: Campaign) -> dict[str, SchedulerState]:
    return outcomes_now(made)[1]


def script(folder: Path, *cells: Cell, **options: str) -> str:
    made = campaign_of(folder, *cells)
    made.prepare(cells)
    made.scheduler_folder.mkdir()
    paths = SlurmBackend({name.replace("_", "-"): value for name, value in options.items()}).generate(made, cells)
    return next(path for path in paths if path.suffix == ".sh").read_text()


# --- scripts


def test_a_script_asks_for_what_the_cells_need(tmp_path: Path) -> None:
    gpu = cell(compute_capability="8.0", ranks=2, cpus=4, memory_mb=2000, timeout_s=100.0)
    written = script(
        tmp_path,
        gpu,
        features="8.0=a100|a30,9.0=h100",
        constraint="ib",
        concurrent="1",
        partition="gpu,big",
        account="me",
    )
    for line in (
        "--array=0-0",
        "--cpus-per-task=4",
        "--mem=2000M",
        "--gres=gpu:2",
        '--constraint="ib&(a100|a30)"',
        "--time=5",  # 60 s for the environment, 100 s for the probe, 60 s around them, and then the scheduler
        "--deadline=now+86700",
        "--no-requeue",
        "--partition=gpu,big",
        "--account=me",
    ):
        assert f"#SBATCH {line}\n" in written, line


def test_the_deadline_bounds_the_wait_for_machines_alone(tmp_path: Path) -> None:
    """Elements that wait for others of their own array, as few may run at once, get that time on top."""
    cells = [cell(version=f"{number}.0") for number in range(5)]  # limit 125 s: 4 minutes
    assert "--array=0-4%2\n" in (written := script(tmp_path / "a", *cells, concurrent="2", pending_s="10"))
    assert f"--deadline=now+{10 + 3 * 4 * 60}\n" in written
    assert f"--deadline=now+{10 + 4 * 60}\n" in script(tmp_path / "b", *cells, pending_s="10")


def test_one_array_for_each_shape(tmp_path: Path) -> None:
    cells = [cell(), cell(version="2.0"), cell(ranks=2, cpus=2), cell(version="3.0", memory_mb=10)]
    made = campaign_of(tmp_path, *cells)
    made.scheduler_folder.mkdir()
    paths = SlurmBackend({}).generate(made, cells)
    lists = [path.read_text().split() for path in paths if path.suffix == ".txt"]
    assert sorted(map(len, lists)) == [1, 1, 2]
    assert sorted(name for listed in lists for name in listed) == sorted(each.cell_id for each in cells)
    assert {path.name for path in made.scheduler_folder.glob("*.sh")} == {path.name for path in paths[::2]}
    SlurmBackend({}).generate(made, cells[:1])  # what was not submitted goes
    assert len(list(made.scheduler_folder.glob("cells-*"))) == 2


def test_large_arrays_are_divided(tmp_path: Path) -> None:
    cells = [cell(version=f"{number}") for number in range(1002)]
    made = campaign_of(tmp_path, *cells)
    made.scheduler_folder.mkdir()
    paths = SlurmBackend({}).generate(made, cells)
    assert [len(path.read_text().split()) for path in paths if path.suffix == ".txt"] == [1000, 2]


def test_an_element_runs_the_command_of_its_cell(tmp_path: Path) -> None:
    """Names and paths that mean something to a shell mean nothing in the script."""
    folder = tmp_path / 'it\'s $(touch spoilt) & "more"'
    nasty = [
        cell(framework="a$(touch spoilt);b", version="1'\n#SBATCH --array=7"),
        cell(recipe="../x y`touch spoilt`.py"),
    ]
    echo = folder / "say arguments"
    written = script(folder, *nasty, python=str(echo), cache="$HOME/x y")
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$DEEP500_FLEET_CACHE" "$@"\n')
    echo.chmod(0o755)
    scheduler = folder / "campaign" / "scheduler"
    assert [line for line in written.splitlines() if "--array" in line] == ["#SBATCH --array=0-1"]
    for index, each in enumerate(nasty):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(index)}
        path = next(scheduler.glob("*.sh"))
        said = subprocess.run(["bash", path.name], cwd=scheduler, env=environment, capture_output=True, text=True)
        made = campaign_of(folder, *nasty)
        assert said.stdout.splitlines()[1:] == made.job_command(each)[1:], said.stderr
        assert said.stdout.splitlines()[0].endswith("/$HOME/x y")
    assert not list(tmp_path.rglob("spoilt"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": "gpu\n#SBATCH --array=9"}, "The option 'partition' is 'gpu\\n#SBATCH --array=9'"),
        ({"constraint": 'a"; rm'}, "The constraint is"),
        ({"features": "8.0"}, "CAPABILITY=FEATURE"),
        ({"features": "8=a100"}, "two numbers, such as 8.0"),
        ({"gpu-type": "a100:2"}, "The option 'gpu-type'"),
        ({"concurrent": "0"}, "a number above zero"),
        ({"pending-s": "1d"}, "a number above zero"),
        ({"python": "a\nb"}, "is no path"),
        ({"collect": "maybe"}, "accepted are yes and no"),
        ({"partitions": "x"}, "Did you mean 'partition'"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(FleetError) as caught:
        SlurmBackend(options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_capability_without_a_feature_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"--option features=8\.0=FEATURE"):
        script(tmp_path, cell(compute_capability="8.0"), features="9.0=h100")


# --- what SLURM says


def test_what_squeue_says_of_elements(tmp_path: Path, fake: FakeSlurm) -> None:
    cells = [cell(version=f"{number}") for number in range(10)]
    made = run(campaign_of(tmp_path, *cells))
    name, times = name_of(made), (1000, 1010, 1020)
    fake.queue(
        (1, 0, "PENDING", "Resources", 0, 1000, 2000, 0, name),  # when it may start
        (1, 1, "RUNNING", "None", 0, 1000, 1010, 2000, name),  # when it will have ended
        (1, 2, "COMPLETED", "None", 0, *times, name),
        (1, 3, "FAILED", "NonZeroExitCode", 7 << 8, *times, name),
        (1, 4, "FAILED", "JobLaunchFailure", 9, *times, name),
        (1, 5, "TIMEOUT", "TimeLimit", 15, *times, name),
        (1, 6, "CANCELLED", "None", 15, *times, name),
        (1, 7, "NODE_FAIL", "NodeDown", 1, *times, name),
        (1, 8, "DEADLINE", "DeadLine", 1, 1000, 1020, 1020, name),
        (1, 9, "OUT_OF_MEMORY", "OutOfMemory", 125 << 8, *times, name),
        ("N/A", "N/A", "Nonsense", "", "", "", "", "", "of someone else"),
    )
    found = states(made)
    told = [(s.state, s.exit_code, s.started, s.ended) for s in (found[each.cell_id] for each in cells)]
    assert told == [
        ("pending", None, None, None),
        ("running", None, 1010.0, None),
        ("completed", 0, 1010.0, 1020.0),
        ("failed", 7, 1010.0, 1020.0),
        ("failed", -9, 1010.0, 1020.0),
        ("timeout", -15, 1010.0, 1020.0),
        ("cancelled", -15, 1010.0, 1020.0),
        ("node_lost", -1, 1010.0, 1020.0),
        ("expired", -1, None, 1020.0),
        ("out_of_memory", 125, 1010.0, 1020.0),
    ]
    assert found[cells[0].cell_id].reason == "Resources"
    assert found[cells[3].cell_id].label == "1_3"


def test_ends_are_remembered_when_slurm_forgets(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell(), cell(version="2.0"), cell(version="3.0")), pending_s="1")
    name = name_of(made)
    fake.queue(
        (1, 0, "NODE_FAIL", "NodeDown", 0, 1000, 1010, 1020, name),
        (1, 1, "PENDING", "Resources", 0, 1000, 0, 0, name),
        (1, 2, "RUNNING", "None", 0, 1000, 1010, 2000, name),
    )
    ids = [each.cell_id for each in made.cells]
    assert [states(made)[key].state for key in ids] == ["node_lost", "pending", "running"]
    (made.cell_folder(ids[2]) / "record.json").write_text("{}")
    fake.queue()
    found = [states(made)[key] for key in ids]
    assert [state.state for state in found] == ["node_lost", "unknown", "unknown"]
    assert found[1].reason == "SLURM no longer knows job 1_1"
    memory = made.scheduler_folder / "slurm.json"
    content = json.loads(memory.read_text())
    content["arrays"][0]["submitted"] = 1000.0  # its deadline has passed since
    memory.write_text(json.dumps(content))
    found = [states(made)[key] for key in ids]
    assert [state.state for state in found] == ["node_lost", "expired", "unknown"]
    assert found[1].reason == "SLURM no longer knows the job; it never began, and last waited for Resources"


def test_accounting_is_asked_for_what_is_forgotten(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, *(cell(version=f"{number}") for number in range(4))))
    name = name_of(made)
    fake.says(
        "accounts",
        f"1_0|COMPLETED|0:0|1000|1010|1020|{name}\n1_1|CANCELLED by 1000|0:15|1000|1010|1020|{name}\n"
        f"1_2|FAILED|3:0|1000|1010|1020|{name}\n1_[3-9%2]|PENDING|0:0|1000|Unknown|Unknown|{name}\nnonsense\n",
    )
    found = [states(made)[each.cell_id] for each in made.cells]
    assert [(state.state, state.exit_code) for state in found] == [
        ("completed", 0),
        ("cancelled", -15),
        ("failed", 3),
        ("unknown", None),
    ]
    assert found[1].reason == "by 1000"


def test_what_expires_says_what_it_last_waited_for(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell()))
    fake.queue((1, 0, "PENDING", "ReqNodeNotAvail, May be reserved for other job", 0, 1000, 0, 0, name_of(made)))
    states(made)
    fake.queue((1, 0, "DEADLINE", "DeadLine", 1, 1000, 1020, 1020, name_of(made)))
    outcome = outcomes_now(made)[0][cell().cell_id]
    assert outcome.status == "no_match"
    assert outcome.cause == (
        "pending until the deadline: it last waited for ReqNodeNotAvail, May be reserved for other job"
    )


def test_a_controller_that_is_down_changes_nothing(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell(), cell(version="2.0")))
    name = name_of(made)
    fake.queue(
        (1, 0, "RUNNING", "None", 0, 1000, 1010, 0, name), (1, 1, "COMPLETED", "None", 0, 1000, 1010, 1020, name)
    )
    states(made)
    fake.says("down", "squeue: error: slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    found = states(made)
    assert [found[each.cell_id].state for each in made.cells] == ["running", "completed"]
    assert "Unable to contact slurm controller" in found[made.cells[0].cell_id].reason
    assert len(plan_run(made).active) == 1  # what may still run is not started again


# --- submitting


def test_what_no_machine_meets_is_refused_and_the_rest_submitted(tmp_path: Path, fake: FakeSlurm) -> None:
    wanted = (cell(), cell(version="2.0", memory_mb=10**6))
    answer = """#!/bin/sh
if grep -q 1000000M "$2"; then
    echo 'sbatch: error: Memory specification can not be satisfied' >&2
    echo 'sbatch: error: Batch job submission failed: Requested node configuration is not available' >&2
    exit 1
fi
echo 5
"""
    fake.says("bin/sbatch", answer)
    made = run(campaign_of(tmp_path, *wanted))
    outcomes = outcomes_now(made)[0]
    assert outcomes[wanted[0].cell_id].status == "missing"
    refused = outcomes[wanted[1].cell_id]
    assert (refused.status, refused.cause) == (
        "no_match",
        "refused: Memory specification can not be satisfied; Requested node configuration is not available",
    )


@pytest.mark.parametrize(
    "message",
    [
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "Batch job submission failed: Invalid account or account/partition combination specified",
        "Batch job submission failed: Invalid partition name specified",
    ],
)
def test_other_failures_say_nothing_of_machines(tmp_path: Path, fake: FakeSlurm, message: str) -> None:
    made = campaign_of(tmp_path, cell(), cell(version="2.0", ranks=2, cpus=2))
    fake.says("refuses", f"sbatch: error: {message}\n")
    with pytest.raises(FleetError) as caught:
        run(made)
    assert message.partition("failed: ")[2] in str(caught.value)
    assert "(1 other arrays failed, too)" in str(caught.value)
    fake.forgets("refuses")
    made = Campaign.read(made.folder)
    assert {outcome.status for outcome in outcomes_now(made)[0].values()} == {"missing"}
    made = run(made)
    assert len(states(made)) == 2


def test_a_number_that_was_lost_is_found_by_name(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell()))
    memory = made.scheduler_folder / "slurm.json"

    def lose(phase: str = "submitting") -> None:
        content = json.loads(memory.read_text())
        content["arrays"][0].update(phase=phase, job_id=None)
        memory.write_text(json.dumps({**content, "seen": {}}))

    lose()
    fake.says("down", "squeue: error: no\n")
    assert states(made)[cell().cell_id].state == "pending"  # nobody knows, so it is not started again
    assert len(plan_run(made).active) == 1
    fake.forgets("down")
    fake.queue((42, 0, "RUNNING", "None", 0, 1000, 1010, 0, name_of(made)))
    assert states(made)[cell().cell_id].label == "42_0"
    lose("generated")  # submitted by hand
    assert states(made)[cell().cell_id].label == "42_0"
    lose()
    fake.queue((43, "N/A", "FAILED", "BadConstraints", 1, 1000, 1000, 1000, name_of(made)))  # left by a refusal
    assert states(made)[cell().cell_id].state == "refused"
    lose()
    fake.queue()
    fake.says("accounts", f"44_0|COMPLETED|0:0|1000|1010|1020|{name_of(made)}\n")
    assert states(made)[cell().cell_id].state == "completed"
    lose()
    fake.says("accounts", "")
    assert states(made) == {}  # it was never submitted
    before = fake.asked("sbatch")
    run(made)
    assert fake.asked("sbatch") == before + 1


def test_a_submission_looks_for_lost_numbers_first(tmp_path: Path, fake: FakeSlurm) -> None:
    """Between what was planned and the submission, an older ``sbatch`` may have come through."""
    made = run(campaign_of(tmp_path, cell()))
    memory = made.scheduler_folder / "slurm.json"
    content = json.loads(memory.read_text())
    content["arrays"][0].update(phase="generated", job_id=None)
    memory.write_text(json.dumps(content))
    fake.queue((42, 0, "RUNNING", "None", 0, 1000, 1010, 0, name_of(made)))
    before = fake.asked("sbatch")
    SlurmBackend({"collect": "no"}).submit(made, made.cells, lambda _: None)
    assert fake.asked("sbatch") == before


def test_the_last_job_collects_after_all_others(tmp_path: Path, fake: FakeSlurm) -> None:
    made, _ = run_campaign(campaign_of(tmp_path, cell(), cell(version="2.0", cpus=2)), "slurm", {})
    asked = (fake.folder / "asked").read_text().splitlines()
    assert asked[-1].startswith("sbatch --parsable --dependency=afterany:1:2 collect-")
    text = next(made.scheduler_folder.glob("collect-*.sh")).read_text()
    assert '-m deep500 fleet compat collect "$(cd .. && pwd)"' in text


def test_an_older_attempt_gives_way(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell()))
    fake.queue((1, 0, "CANCELLED", "None", 15, 1000, 1010, 1020, name_of(made)))
    assert states(made)[cell().cell_id].state == "cancelled"
    made = run(made)
    assert states(made)[cell().cell_id].label == "2_0"


def test_a_memory_that_cannot_be_read(tmp_path: Path, fake: FakeSlurm) -> None:
    made = run(campaign_of(tmp_path, cell()))
    for text in (
        "{",
        "[]",
        '{"arrays": [{"name": 1}]}',
        '{"arrays": [], "seen": {"1_0": {"state": "x"}}, "waited": {}}',
    ):
        (made.scheduler_folder / "slurm.json").write_text(text)
        with pytest.raises(FleetError, match=r"slurm\.json, which holds the numbers of the jobs, cannot be read"):
            states(made)


def test_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FleetError, match="There is no squeue here"):
        run(campaign_of(tmp_path, cell()))
    assert list((tmp_path / "campaign" / "scheduler").glob("cells-*.sh"))  # the files are written all the same
