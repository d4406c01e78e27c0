from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import FleetError
from deep500.fleet.compat.package_index import Offer, PackageIndex
from deep500.fleet.compat.pruning import Pruner
from tests.unit.fleet.compat.support import FakeIndex, cell, matrix_of

EVERYTHING = Offer(("1.0", "2.0", "3.0rc1"))
POOL = """
pool:
  - {name: big, gpus: 4, compute_capability: "9.0", cuda_at_most: "12.8", python: ["3.11"], cpus: 16}
  - {name: old, gpus: 1, compute_capability: "7.0", cpus: 8}
  - {name: plain, cpus: 4, memory_mb: 8000}
"""


def reason(folder: Path, text: str, offer: Offer = EVERYTHING, **changes: Any) -> tuple[str, str] | None:
    index = FakeIndex({("fleetalpha", "3.11"): offer, ("fleetalpha", "3.12"): offer})
    whole = "frameworks: {fleetalpha: {versions: ['1.0', '2.0'], cuda: {none: {}, '12.8': {}, '13.0': {}}}}\n" + text
    return Pruner(matrix_of(folder, whole), index).reason(cell(**changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ranks": 4, "cpus": 4}, None),
        ({"cpus": 32}, "no machine of the pool that is left has 32 processor cores"),
        ({"compute_capability": "9.0", "ranks": 4, "cuda": "12.8"}, None),
        ({"compute_capability": "9.0", "ranks": 5}, "no machine of the pool has 5 such GPUs"),
        ({"compute_capability": "8.0"}, "no machine of the pool has GPUs of compute capability 8.0"),
        ({"compute_capability": "9.0", "cuda": "13.0"}, "no machine of the pool with them has a driver for CUDA 13.0"),
        ({"compute_capability": "7.0", "cuda": "13.0"}, None),
        ({"compute_capability": "9.0", "python": "3.12"}, "no machine of the pool that is left has Python 3.12"),
        ({"compute_capability": "7.0", "python": "3.12"}, None),
    ],
)
def test_the_pool(changes: dict[str, Any], expected: str | None, tmp_path: Path) -> None:
    found = reason(tmp_path, POOL, **changes)
    assert found == (None if expected is None else ("pool", expected))


@pytest.mark.parametrize(
    ("rule", "changes", "holds"),
    [
        ("version: '<2'", {}, True),
        ("version: '<2'", {"version": "2.0"}, False),
        ("version: '>=3.0a1'", {"version": "3.0rc1"}, True),
        ("version: '<2', python: '>=3.12'", {}, False),
        ("version: '<2', python: '>=3.12'", {"python": "3.12"}, True),
        ("python: '>=3.9'", {"python": "3.11"}, True),
        ("framework: other", {}, False),
        ("framework: fleetalpha, ranks: '>1'", {"ranks": 2}, True),
        ("cuda: none", {}, True),
        ("cuda: '>=12'", {}, False),
        ("cuda: '>=12'", {"cuda": "12.8", "compute_capability": "9.0"}, True),
        ("compute_capability: '<8'", {"compute_capability": "7.5"}, True),
        ("recipe: digits_mlp", {"recipe": "digits_mlp", "adapter": "reference"}, True),
        ("recipe: digits_mlp", {}, False),
        ("recipe: none", {}, True),
        ("recipe: none", {"recipe": "digits_mlp", "adapter": "reference"}, False),
        ("ranks: 2", {"ranks": 2}, True),
        ("ranks: 2", {}, False),
        ("version: '1.0'", {}, True),
        ("python: '3.12'", {}, False),
    ],
)
def test_rules(rule: str, changes: dict[str, Any], holds: bool, tmp_path: Path) -> None:
    found = reason(tmp_path, f"rules: [{{{rule}, reason: it is known}}]", **changes)
    assert found == (("rule", "it is known") if holds else None)


@pytest.mark.parametrize("rule", ["version: 'two'", "python: '=>3.11'"])
def test_rules_that_are_none(rule: str, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no specifier"):
        reason(tmp_path, f"rules: [{{{rule}, reason: x}}]")


def test_a_rule_of_a_framework_that_is_not_tried_is_said(tmp_path: Path) -> None:
    text = "frameworks: {fleetalpha: ['1.0']}\nrules: [{framework: fleetalfa, version: '1.0', reason: x}]"
    (note,) = Pruner(matrix_of(tmp_path, text), PackageIndex(offline=True)).notes
    assert "Did you mean 'fleetalpha'?" in note


def test_versions_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="'two' is no version"):
        reason(tmp_path, "", version="two")


def test_newest_of_a_list(tmp_path: Path) -> None:
    assert reason(tmp_path, "newest: 1", version="2.0") is None
    source, said = reason(tmp_path, "newest: 1") or ("", "")
    assert source == "newest"
    assert "newest 1 versions of fleetalpha" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cuda": "12.8"}, "CUDA 12.8 needs a GPU"),
        ({"recipe": "digits_mlp"}, "does not say by which name recipes know fleetalpha"),
        ({"cuda": "11.0", "compute_capability": "9.0"}, "does not say how fleetalpha is installed for CUDA 11.0"),
    ],
)
def test_axes_that_do_not_go_together(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    source, found = reason(tmp_path, "", **changes) or ("", "")
    assert source == "matrix"
    assert said in found


def test_the_index(tmp_path: Path) -> None:
    assert reason(tmp_path, "", Offer(("1.0.0",))) is None  # 1.0 is 1.0.0
    assert reason(tmp_path, "", Offer(("1.0+cpu",))) is None
    assert reason(tmp_path, "", Offer(("2.0",))) == (
        "package index",
        "the package index does not offer it for Python 3.11; its newest is 2.0",
    )
    assert reason(tmp_path, "", Offer(())) == (
        "package index",
        "the package index offers no fleetalpha for Python 3.11",
    )


def test_what_is_not_known_drops_nothing_and_is_said_once(tmp_path: Path) -> None:
    index = FakeIndex({("fleetalpha", "3.11"): Offer((), "no connection")})
    pruner = Pruner(matrix_of(tmp_path, "frameworks: {fleetalpha: ['1.0']}"), index)  # type: ignore[arg-type]
    assert pruner.reason(cell()) is None
    assert pruner.reason(cell(ranks=2)) is None
    assert pruner.notes == ["Whether fleetalpha is offered for Python 3.11 is not known: no connection."]


def test_what_costs_nothing_is_asked_first(tmp_path: Path) -> None:
    index = FakeIndex({})
    matrix = matrix_of(tmp_path, "frameworks: {fleetalpha: ['1.0']}\nrules: [{version: '<2', reason: x}]")
    assert Pruner(matrix, index).reason(cell()) == ("rule", "x")  # type: ignore[arg-type]
    assert index.asked == []
