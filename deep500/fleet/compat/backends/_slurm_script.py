"""The scripts that are handed to ``sbatch``: plain files, one for each shape of a machine."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deep500.core.errors import FleetError
from deep500.core.texts import shown
from deep500.fleet.compat.backends._shapes import PENDING_S, Shape, checked, number_of
from deep500.fleet.compat.environments import CACHE_VARIABLE

__all__ = ["OPTIONS", "SlurmOptions", "array_script", "collect_script", "deadline_s"]

OPTIONS = {
    "partition": "the partition, or several with commas",
    "account": "the account that is charged",
    "qos": "the quality of service",
    "constraint": "features that every node needs, as sbatch takes them",
    "features": "the constraint for each compute capability: 8.0=a100,9.0=h100|h200",
    "gpu-type": "the type of GPU in --gres=gpu:TYPE:N",
    "concurrent": "how many cells of one array may run at once",
    "pending-s": "seconds that a job may wait; 86400 by default",
    "python": "the Python that runs jobs, 3.10 or newer; python3 by default",
    "cache": "the folder that keeps environments, seen by all nodes; by default one of the user's cache",
    "collect": "yes or no: a last job that collects; yes by default",
    "collect-python": "the Python of that job, where Deep500 is installed; this one by default",
}

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.,@+-]*"
_WORDS = "letters, digits and any of _ . , @ + -"
_CONSTRAINT = r"[A-Za-z0-9_][A-Za-z0-9_.,:&|*()\[\]-]*"


@dataclass(frozen=True)
class SlurmOptions:
    """The backend's options, checked: what could mean something else in a script is refused.

    Attributes:
        words: Options that are handed on to ``sbatch`` as they are, by their names there.
        constraint: Features that every node needs.
        features: The constraint for each compute capability.
        gpu_type: The type of GPU in ``--gres``.
        concurrent: How many cells of one array may run at once; ``None`` for all.
        pending_s: How long a job may wait.
        python: What runs the job.
        cache: The folder that keeps environments; ``None`` for the job's own choice.
        collect: Whether a last job collects.
        collect_python: What runs that.
    """

    words: Mapping[str, str] = field(default_factory=dict)
    constraint: str | None = None
    features: Mapping[str, str] = field(default_factory=dict)
    gpu_type: str | None = None
    concurrent: int | None = None
    pending_s: float = PENDING_S
    python: str = "python3"
    cache: str | None = None
    collect: bool = True
    collect_python: str = sys.executable

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SlurmOptions:
        """Return the options of these texts.

        Raises:
            FleetError: A value is not accepted.
        """
        words = {
            name: checked(f"option {name!r}", options[name], _WORD, _WORDS)
            for name in ("partition", "account", "qos")
            if name in options
        }
        gpu_type = options.get("gpu-type")
        concurrent = number_of(options, "concurrent", None)
        if options.get("collect", "yes") not in ("yes", "no"):
            raise FleetError(f"The option 'collect' is {shown(options['collect'])}; accepted are yes and no.")
        return cls(
            words,
            _constraint(options["constraint"]) if "constraint" in options else None,
            _features(options.get("features", "")),
            None if gpu_type is None else checked("option 'gpu-type'", gpu_type, _WORD, _WORDS),
            None if concurrent is None else math.ceil(concurrent),
            number_of(options, "pending-s", PENDING_S) or PENDING_S,
            _path(options.get("python", "python3")),
            str(Path(_path(options["cache"])).absolute()) if "cache" in options else None,
            options.get("collect", "yes") == "yes",
            _path(options.get("collect-python", sys.executable)),
        )

    def constraint_of(self, shape: Shape) -> str | None:
        """Return what ``--constraint`` says for a shape; ``None`` for nothing.

        Raises:
            FleetError: SLURM cannot be asked for the compute capability, as no feature stands for it.
        """
        wanted = [f"({text})" if "|" in text else text for text in (self.constraint,) if text]
        if shape.compute_capability:
            feature = self.features.get(shape.compute_capability)
            if feature is None:
                known = ", ".join(self.features) or "none"
                raise FleetError(
                    f"SLURM has no request for the compute capability {shape.compute_capability}; known features are "
                    f"for: {known}. Name the feature of such nodes (sinfo -o '%N %f' lists them): --option "
                    f"features={shape.compute_capability}=FEATURE."
                )
            wanted.append(f"({feature})" if "|" in feature and wanted else feature)
        return "&".join(wanted) or None


def deadline_s(shape: Shape, count: int, options: SlurmOptions) -> int:
    """Return in how many seconds from its submission an array has to have ended.

    SLURM takes a waiting job back when it could no longer end before its deadline, that is, when it would have to start
    later than ``deadline - time limit``; it does not look at the deadline of a job that runs. So the deadline is the
    longest wait and the time limit, and then bounds the wait alone. Where only some elements of an array may run at
    once, the last ones wait for others of their own array, which is no lack of machines: they get that time on top.
    """
    waves = math.ceil(count / options.concurrent) if options.concurrent else 1
    return math.ceil(options.pending_s) + waves * shape.minutes * 60


def array_script(name: str, cells_file: str, shape: Shape, count: int, options: SlurmOptions) -> str:
    """Return the script of one array.

    Args:
        name: The array's own name, by which it is found again.
        cells_file: The file beside the script with the ids of the cells, one a line, in the order of the elements.
        shape: What each asks for.
        count: How many cells.
        options: The backend's options.

    Raises:
        FleetError: SLURM cannot be asked for what is needed.
    """
    throttle = f"%{options.concurrent}" if options.concurrent and options.concurrent < count else ""
    constraint = options.constraint_of(shape)
    lines = [
        *_head(name, options, f"{count} cells that each ask for {shape}", "%a"),
        f"#SBATCH --array=0-{count - 1}{throttle}",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        f"#SBATCH --cpus-per-task={shape.cpus}",
        *([f"#SBATCH --mem={shape.memory_mb}M"] if shape.memory_mb else []),
        *([f"#SBATCH --gres=gpu:{options.gpu_type + ':' if options.gpu_type else ''}{shape.gpus}"] * (shape.gpus > 0)),
        *([f'#SBATCH --constraint="{constraint}"'] if constraint else []),
        f"#SBATCH --time={shape.minutes}",
        "# A job that could not end before it is taken back while it waits; a job that runs is left alone.",
        f"#SBATCH --deadline=now+{deadline_s(shape, count, options)}",
        "# A job that lost its node must say so instead of starting again.",
        "#SBATCH --no-requeue",
        "",
        "set -eu",
        *([f"export {CACHE_VARIABLE}={shlex.quote(options.cache)}"] if options.cache else []),
        f'cell=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {cells_file})',
        "campaign=$(cd .. && pwd)",
        f'exec {shlex.quote(options.python)} "$campaign/job/cell_job.py" "$campaign/cells/$cell"',
    ]
    return "\n".join(lines) + "\n"


def collect_script(name: str, options: SlurmOptions) -> str:
    """Return the script of the job that collects when the arrays have ended, however they did."""
    lines = [
        *_head(name, options, "collects what the other jobs left; submitted with --dependency=afterany", "%j"),
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        "#SBATCH --time=30",
        "",
        "set -eu",
        f'exec {shlex.quote(options.collect_python)} -m deep500 fleet compat collect "$(cd .. && pwd)"',
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, options: SlurmOptions, about: str, number: str) -> list[str]:
    return [
        "#!/bin/bash",
        f"# A part of a campaign: {about}.",
        f"# By hand, from this folder: sbatch {name}.sh",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --output=logs/{name}-{number}.txt",
        *(f"#SBATCH --{word}={value}" for word, value in options.words.items()),
    ]


def _constraint(text: str) -> str:
    return checked("constraint", text, _CONSTRAINT, "features joined by & and |, as sbatch takes them")


def _features(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        capability, equals, feature = part.partition("=")
        if not equals:
            raise FleetError(f"The option 'features' has {shown(part)}; accepted is CAPABILITY=FEATURE, as 8.0=a100.")
        checked("compute capability", capability, r"\d+\.\d+", "two numbers, such as 8.0")
        found[capability] = _constraint(feature)
    return found


def _path(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise FleetError(f"{shown(text)} is no path: the path of a program or a folder is needed, without line breaks.")
    return text
