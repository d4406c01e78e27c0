"""From a matrix to the cells that are tried."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.core.texts import message_of, shown_path
from deep500.fleet.compat.campaign import CAMPAIGN_FILE, Campaign
from deep500.fleet.compat.cell import Cell, DroppedCell
from deep500.fleet.compat.cost import estimate_cost
from deep500.fleet.compat.job_record import utc_s
from deep500.fleet.compat.matrix import Matrix
from deep500.fleet.compat.package_index import PackageIndex
from deep500.fleet.compat.pruning import Pruner, newest_first

if TYPE_CHECKING:
    from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["expand", "plan_campaign"]

#: More combinations are a slip in the matrix.
_MOST = 100_000

_TIMEOUT_S = 600.0
_ENVIRONMENT_TIMEOUT_S = 1800.0


def plan_campaign(
    matrix: Matrix,
    folder: str | Path | None,
    *,
    offline: bool = False,
    older: OutcomeTable | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Campaign:
    """Return the campaign of a matrix; nothing is written yet.

    Args:
        matrix: What is combined.
        folder: Where the campaign will be; ``None`` where it will not be written.
        offline: Whether to ask no package index.
        older: Outcomes of older campaigns, for the cost.
        seed: Seed of the cost's interval.
        tell: Is told where it is.

    Raises:
        FleetError: The matrix contradicts itself, ``newest N`` cannot be answered, or the folder is a campaign already.
    """
    place = _place(folder or matrix.path.parent)
    if folder is not None and (place / CAMPAIGN_FILE).exists():
        raise FleetError(f"{shown_path(folder)} holds a campaign already; name another folder, or go on with that one.")
    index = PackageIndex(offline)
    pruner = Pruner(matrix, index)
    kept: dict[str, Cell] = {}
    dropped: list[DroppedCell] = []
    for number, cell in enumerate(expand(matrix, index), 1):
        tell(f"{number} cells looked at, {len(kept)} kept")
        reason = pruner.reason(cell)
        if cell.cell_id in kept:
            dropped.append(DroppedCell(cell, "duplicate", "the matrix names the same cell twice"))
        elif reason is not None:
            dropped.append(DroppedCell(cell, *reason))
        else:
            kept[cell.cell_id] = cell
    created = utc_s()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created))
    cells = tuple(kept.values())
    return Campaign(
        place,
        f"{matrix.name}-{stamp}",
        created,
        matrix.content,
        matrix.hash,
        cells,
        tuple(dropped),
        estimate_cost(cells, matrix, older, seed),
        tuple(pruner.notes),
    )


def _place(folder: str | Path) -> Path:
    try:
        place = Path(folder).resolve()
        place.stat()
    except FileNotFoundError:
        return place
    except (OSError, RuntimeError, ValueError) as error:
        raise FleetError(f"The campaign cannot be in {str(folder)!r}: {message_of(error)}.") from error
    if not place.is_dir():
        raise FleetError(f"The campaign cannot be in {shown_path(folder)}: it is no folder; name another.")
    return place


def expand(matrix: Matrix, index: PackageIndex) -> Iterator[Cell]:
    """Yield all combinations of a matrix, in its order; versions of ``newest N`` come from the package index.

    Raises:
        FleetError: The package index cannot be asked for the newest versions, or there are more combinations than
            anyone means.
    """
    pythons = matrix.axis("python", [f"{sys.version_info[0]}.{sys.version_info[1]}"])
    recipes = [matrix.recipe(name) for name in matrix.axis("recipe", [None])]
    axes = (
        pythons,
        matrix.axis("cuda", [None]),
        matrix.axis("compute_capability", [None]),
        [int(ranks) for ranks in matrix.axis("ranks", [1])],
        recipes,
    )
    size = 1
    for axis in axes:
        size *= len(axis)
    counts = {name: matrix.newest(name) or len(said["versions"]) for name, said in matrix.frameworks.items()}
    if size * sum(counts.values()) > _MOST:
        raise FleetError(
            f"The matrix has {size * sum(counts.values()):,} combinations; accepted are {_MOST:,}. Shorten an axis."
        )
    for name in matrix.frameworks:
        versions = _versions(matrix, name, pythons, index)
        for version, (python, cuda, capability, ranks, recipe) in itertools.product(versions, itertools.product(*axes)):
            yield _cell(matrix, name, version, python, cuda, capability, ranks, recipe)


def _versions(matrix: Matrix, framework: str, pythons: list[str], index: PackageIndex) -> list[str]:
    """Return the versions of a framework: those that are listed, or the newest of the index, of any Python."""
    count = matrix.newest(framework)
    if count is None:
        return list(matrix.frameworks[framework]["versions"])
    ways = matrix.axis("cuda", [None])
    offers = [index.offer(framework, python, matrix.pip_options(framework, ways[0])) for python in pythons]
    fault = next((offer.fault for offer in offers if offer.fault is not None), None)
    found = newest_first(sorted({version for offer in offers for version in offer.versions}))
    if fault is not None or not found:
        raise FleetError(
            f"The newest {count} versions of {framework!r} are wanted, but the package index "
            f"{f'cannot be asked: {fault}' if fault else 'offers none'}. List the versions in the matrix."
        )
    return found[:count]


def _cell(
    matrix: Matrix,
    framework: str,
    version: str,
    python: str,
    cuda: str | None,
    capability: str | None,
    ranks: int,
    recipe: str | None,
) -> Cell:
    said, content = matrix.frameworks[framework], matrix.content
    seconds: dict[str, Any] = {
        "timeout_s": float(said.get("timeout_s", content.get("timeout_s", _TIMEOUT_S))),
        "environment_timeout_s": float(content.get("environment_timeout_s", _ENVIRONMENT_TIMEOUT_S)),
    }
    return Cell(
        framework,
        version,
        python,
        cuda,
        capability,
        ranks,
        recipe,
        said.get("adapter") if recipe is not None else None,
        str(said.get("import", re.sub(r"[-.]+", "_", framework))),
        matrix.probe(framework),
        matrix.requirements(framework, version, cuda, recipe),
        matrix.pip_options(framework, cuda),
        cpus=ranks * int(content.get("cpus_per_rank", 1)),
        memory_mb=int(content["memory_mb"]) if "memory_mb" in content else None,
        **seconds,
    )
