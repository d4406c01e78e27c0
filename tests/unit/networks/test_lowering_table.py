from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import PluginError, UnsupportedOperatorError
from deep500.networks.lowering_table import LoweringTable
from deep500.networks.operator_node import OperatorNode


def node(op_type: str, version: int, domain: str = "") -> OperatorNode:
    return OperatorNode("some_node", domain, op_type, version, {}, ("x",), ("y",))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoweringTable]:
    folder = tmp_path / "lowered"
    folder.mkdir()
    (folder / "__init__.py").write_text("lowerings = None\n")
    (folder / "linear.py").write_text("from lowered import lowerings\nlowerings.register('Gemm', since=11)('gemm')\n")
    (folder / "_shared.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    created = LoweringTable("testing", "lowered")
    import lowered  # type: ignore[import-not-found]

    lowered.lowerings = created
    yield created
    for name in [name for name in sys.modules if name.split(".")[0] == "lowered"]:
        del sys.modules[name]


def register(table: LoweringTable, *versions: int, **options: Any) -> None:
    for version in versions:
        table.register("Op", since=version, **options)(f"op-{version}")  # type: ignore[type-var]


@pytest.mark.parametrize(("version", "found"), [(7, "op-7"), (12, "op-7"), (13, "op-13"), (17, "op-13"), (99, "op-18")])
def test_newest_that_is_not_newer_than_the_node_is_found(table: LoweringTable, version: int, found: str) -> None:
    register(table, 13, 7, 18)

    assert table.find(node("Op", version)) == found


def test_node_older_than_all(table: LoweringTable) -> None:
    register(table, 7, 13)

    with pytest.raises(UnsupportedOperatorError) as caught:
        table.find(node("Op", 6))

    assert str(caught.value).startswith(
        "The testing adapter has no lowering for node 'some_node' (ai.onnx::Op, version 6): "
        "it has one from version 7 on, and the node is older."
    )


def test_no_lowering(table: LoweringTable) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"node 'some_node' \(mine::Op, version 1\)\. docs/operators"):
        table.find(node("Op", 1, "mine"))


def test_domains_are_apart(table: LoweringTable) -> None:
    register(table, 1)
    register(table, 2, domain="mine")

    assert table.find(node("Op", 5)) == "op-1"
    assert table.find(node("Op", 5, "mine")) == "op-2"


def test_two_lowerings_of_one_version_are_refused(table: LoweringTable) -> None:
    register(table, 7)

    with pytest.raises(PluginError, match=r"testing has two lowerings of ai\.onnx::Op-7"):
        register(table, 7)


def test_decorator_returns_the_function(table: LoweringTable) -> None:
    def lowering() -> None: ...

    assert table.register("Op", since=1)(lowering) is lowering


def test_files_are_imported_when_the_first_operator_is_looked_up(table: LoweringTable) -> None:
    assert "lowered.linear" not in sys.modules

    assert table.find(node("Gemm", 23)) == "gemm"
    register(table, 3)
    assert table.operators() == [("", "Gemm", 11), ("", "Op", 3)]


def test_lowering_of_all_of_a_domain(table: LoweringTable) -> None:
    table.register("*", since=2, domain="own")("any")  # type: ignore[type-var]
    table.register("Op", since=1, domain="own")("op")  # type: ignore[type-var]

    assert table.find(node("Other", 2, "own")) == "any"
    assert table.find(node("Op", 2, "own")) == "op"
    for version, domain in ((1, "own"), (2, "")):
        with pytest.raises(UnsupportedOperatorError, match="no lowering"):
            table.find(node("Other", version, domain))
    assert ("own", "*", 2) not in table.operators()
