"""The DAG, the submit descriptions and the scripts that are handed to HTCondor: plain files in one folder."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.texts import message_of, shown, shown_path
from deep500.fleet.compat.backends._shapes import PENDING_S, Shape, by_shape, number_of
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.environments import CACHE_VARIABLE
from deep500.fleet.libraries import HTCONDOR

if TYPE_CHECKING:
    from deep500.fleet.compat.cell import Cell

__all__ = ["DAG_FILE", "NODES_FILE", "OPTIONS", "STATUS_FILE", "HTCondorOptions", "periodic_remove", "write_dag_files"]

DAG_FILE = "campaign.dag"
NODES_FILE = "nodes.json"
STATUS_FILE = "status.txt"

OPTIONS = {
    "require-gpus": "an expression that every GPU has to meet, as require_gpus takes it",
    "requirements": "an expression that every machine has to meet",
    "memory-mb": "memory of cells that ask for none; 4096 by default",
    "disk-mb": "disk of a job, which makes an environment there; 10240 by default",
    "concurrent": "how many jobs are in the queue at once",
    "pending-s": "seconds that a job may be idle; 86400 by default",
    "python": "the Python that runs jobs, 3.10 or newer; python3 by default",
    "lines": "a file of further lines for every submit description, which the pool may ask for",
    "collect": "yes or no: a last node that collects; yes by default",
    "collect-python": "the Python of that node, where Deep500 is installed; this one by default",
}

#: The files that a job leaves; they come back in one folder, so that one that is missing does not hold the job.
_LEFT = ("record.json", "stdout.txt", "stderr.txt", "lock.txt", "recipe.json")

#: A PRE script ends so when there is nothing to do.
_SKIP = 2


@dataclass(frozen=True)
class HTCondorOptions:
    """The backend's options, checked.

    Attributes:
        require_gpus: What every GPU has to meet.
        requirements: What every machine has to meet.
        memory_mb: Memory of cells that ask for none.
        disk_mb: Disk of a job.
        concurrent: How many jobs are in the queue at once; ``None`` leaves it to DAGMan.
        pending_s: How long a job may be idle.
        python: What runs the job.
        lines: Further commands of every submit description.
        collect: Whether a last node collects.
        collect_python: What runs that.
    """

    require_gpus: str | None = None
    requirements: str | None = None
    memory_mb: int = 4096
    disk_mb: int = 10240
    concurrent: int | None = None
    pending_s: float = PENDING_S
    python: str = "python3"
    lines: Mapping[str, str] = field(default_factory=dict)
    collect: bool = True
    collect_python: str = sys.executable

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HTCondorOptions:
        """Return the options of these texts.

        Raises:
            FleetError: A value is not accepted.
        """
        if options.get("collect", "yes") not in ("yes", "no"):
            raise FleetError(f"The option 'collect' is {shown(options['collect'])}; accepted are yes and no.")
        concurrent = number_of(options, "concurrent", None)
        return cls(
            _expression(options, "require-gpus"),
            _expression(options, "requirements"),
            math.ceil(number_of(options, "memory-mb", cls.memory_mb) or cls.memory_mb),
            math.ceil(number_of(options, "disk-mb", cls.disk_mb) or cls.disk_mb),
            None if concurrent is None else math.ceil(concurrent),
            number_of(options, "pending-s", PENDING_S) or PENDING_S,
            _plain(options.get("python", "python3"), "Python"),
            _lines(options["lines"]) if "lines" in options else {},
            options.get("collect", "yes") == "yes",
            _plain(options.get("collect-python", sys.executable), "Python"),
        )


def periodic_remove(pending_s: float) -> str:
    """Return the expression by which a job is taken back: only while it is idle, and has been for longer than this.

    A job that runs (status 2) or that is held (5) stays. What was evicted and is idle again has the whole time anew.
    """
    return f"(JobStatus == 1) && ((time() - EnteredCurrentStatus) > {math.ceil(pending_s)})"


def write_dag_files(
    campaign: Campaign, folder: Path, name: str, cells: Sequence[Cell], options: HTCondorOptions
) -> None:
    """Write all that HTCondor needs for some cells into a folder: one node for each cell.

    Args:
        campaign: The campaign, two folders above.
        folder: Where to.
        name: The name of the batch, which no other has.
        cells: The cells.
        options: The backend's options.

    Raises:
        FleetError: The path of the campaign, or what a cell asks for, has no place in a submit description.
    """
    HTCONDOR.require("Running a campaign on HTCondor")
    from htcondor2 import dags

    if " " in _plain(str(campaign.folder), "folder of the campaign"):  # in a DAG, spaces end a word
        raise FleetError(f"The folder {shown_path(campaign.folder)} has spaces, which DAGs cannot hold; move it.")
    folder.mkdir(parents=True)
    dag = dags.DAG(
        dagman_config=_dagman_config(options), node_status_file=dags.NodeStatusFile(Path(STATUS_FILE), update_time=30)
    )
    nodes: dict[str, str] = {}
    for number, (shape, those) in enumerate(by_shape(cells).items(), 1):
        described = folder / f"shape{number}.sub"
        write_atomically(described, str(_submit(_description(folder, shape, options))))
        for cell in those:
            # A layer for each cell, as the scripts of all nodes of a layer have the same arguments. DAGMan allows no
            # points in names of nodes, so that ids of cells cannot be such.
            layer = f"cell{len(nodes) + 1}"
            dag.layer(
                name=layer,
                submit_description=described,
                vars=[{"cell": cell.cell_id}],
                pre=dags.Script("./before.py", [cell.cell_id]),
                post=dags.Script("./after.py", [cell.cell_id, "$RETURN", "$JOBID"]),
                pre_skip_exit_code=_SKIP,
            )
            nodes[f"{layer}:0"] = cell.cell_id
    if options.collect:
        dag.final(name="collect")
        write_atomically(folder / "collect.sub", str(_submit(_collecting(campaign, options))))
    dags.write_dag(dag, folder, DAG_FILE)
    write_atomically(folder / "run_cell.sh", _run_cell(campaign.job_command(cells[0], options.python, shared=False)))
    for script in ("before", "after"):
        text = resources.files(__package__).joinpath(f"_htcondor_{script}.py").read_text(encoding="utf-8")
        write_atomically(folder / f"{script}.py", f"#!/usr/bin/env python3\n{text}")
    for program in ("run_cell.sh", "before.py", "after.py"):
        (folder / program).chmod(0o755)
    write_atomically(folder / NODES_FILE, json.dumps({"batch": name, "nodes": nodes}, indent=1) + "\n")


def _dagman_config(options: HTCondorOptions) -> dict[str, int]:
    # A job that is put on hold (its files did not arrive, it took more memory than it had) would keep the DAG from
    # ever ending: the first time, DAGMan removes it, its node fails and the reason stays in the log.
    config = {"DAGMAN_MAX_JOB_HOLDS": 1}
    if options.concurrent is not None:
        config["DAGMAN_MAX_JOBS_SUBMITTED"] = options.concurrent
    return config


def _description(folder: Path, shape: Shape, options: HTCondorOptions) -> dict[str, str]:
    """Return the submit description of a shape."""
    described = {
        "universe": "vanilla",
        "executable": str(folder / "run_cell.sh"),
        "initialdir": "../../cells/$(cell)",
        "output": "condor_output.txt",
        "error": "condor_errors.txt",
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT",
        "transfer_input_files": "../../job, cell.json, requirements.txt",
        "transfer_output_files": "left",
        "request_cpus": str(shape.cpus),
        "request_memory": str(shape.memory_mb or options.memory_mb),
        "request_disk": f"{options.disk_mb}MB",
        "periodic_remove": periodic_remove(options.pending_s),
        "notification": "never",
    }
    if options.requirements is not None:
        described["requirements"] = options.requirements
    if shape.gpus:
        # The capability is the axis of the matrix: a newer GPU would answer another question.
        described["request_gpus"] = str(shape.gpus)
        described["gpus_minimum_capability"] = described["gpus_maximum_capability"] = shape.compute_capability
        if shape.cuda:
            described["gpus_minimum_runtime"] = shape.cuda
        if options.require_gpus is not None:
            described["require_gpus"] = options.require_gpus
    taken = sorted({name.lower() for name in options.lines} & set(described))
    if taken:
        raise FleetError(
            f"The option 'lines' sets {taken[0]!r}, which the campaign sets itself; take that line out of the file."
        )
    return {**described, **options.lines}


def _collecting(campaign: Campaign, options: HTCondorOptions) -> dict[str, str]:
    words = ["-m", "deep500", "fleet", "compat", "collect", f"'{campaign.folder}'"]
    return {
        "universe": "local",  # on the access point, where the campaign's folder is
        "executable": options.collect_python,
        "arguments": f'"{" ".join(words)}"',
        "output": "collect_output.txt",
        "error": "collect_errors.txt",
        "notification": "never",
    }


def _run_cell(command: Sequence[str]) -> str:
    return (
        "#!/bin/sh\n"
        "# Runs the cell of this folder and puts what it wrote into one folder, which is brought back.\n"
        f'export {CACHE_VARIABLE}="$PWD/environments"\n'
        f"{shlex.join(command)}\n"
        "code=$?\n"
        "mkdir -p left\n"
        f"for file in {' '.join(_LEFT)}; do\n"
        '    [ ! -e "$file" ] || mv "$file" left/\n'
        "done\n"
        "rm -rf environments\n"
        "exit $code\n"
    )


def _submit(described: Mapping[str, str]) -> Any:
    import htcondor2

    return htcondor2.Submit(dict(described))


def _expression(options: Mapping[str, str], name: str) -> str | None:
    """Return an option that is an expression of HTCondor's language; its own parser decides."""
    text = options.get(name)
    if text is None:
        return None
    HTCONDOR.require("Running a campaign on HTCondor")
    import classad2

    try:
        classad2.ExprTree(text)
    except (ValueError, classad2.ClassAdException) as error:
        raise FleetError(f"The option {name!r} is {shown(text)}, which is no ClassAd expression.") from error
    return _plain(text, f"option {name!r}", quotes=True)


def _plain(text: str, what: str, quotes: bool = False) -> str:
    """Return a text that means itself in a submit description."""
    odd = ("$",) if quotes else ("$", '"', "'")
    if not text.strip() or not text.isprintable() or any(sign in text for sign in odd):
        raise FleetError(
            f"The {what} is {shown(text)}, which a submit description would read otherwise; accepted are texts "
            f"without line breaks and without any of: {' '.join(odd)}"
        )
    return text


def _lines(path: str) -> dict[str, str]:
    """Return the commands of a file of submit commands."""
    HTCONDOR.require("Running a campaign on HTCondor")
    import htcondor2

    try:
        read = htcondor2.Submit(read_regular(path).decode("utf-8"))
    except (OSError, ValueError, htcondor2.HTCondorException) as error:
        raise FleetError(
            f"The lines for submit descriptions in {shown_path(path)} cannot be read: {message_of(error)}"
        ) from error
    return {str(name): str(value) for name, value in read.items()}
