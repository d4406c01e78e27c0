from __future__ import annotations

from pathlib import Path

import pytest

from deep500.fleet.compat.package_index import PackageIndex
from tests.unit.fleet.compat.tiny_wheels import make_wheel


@pytest.mark.slow  # the planner's tests ask for versions before a release, and for what is not offered, without pip
def test_what_else_a_folder_offers(tmp_path: Path) -> None:
    for version in ("1.10", "2.0rc1"):
        make_wheel(tmp_path, "fleetalpha", version, "")
    options = ("--no-index", f"--find-links {tmp_path}")
    assert PackageIndex().offer("fleetalpha", "3.12", options, pre=True).versions == ("2.0rc1", "1.10")
    assert PackageIndex().offer("fleetalpha", "3.12", options).versions == ("1.10",)


def test_what_a_folder_offers(tmp_path: Path) -> None:
    for version in ("1.9", "1.10", "2.0rc1"):
        make_wheel(tmp_path / "with space", "fleetalpha", version, "")
    options = ("--no-index", f"--find-links '{tmp_path}/with space'")
    index = PackageIndex()
    offer = index.offer("fleetalpha", "3.12", options)
    assert (offer.versions, offer.fault) == (("1.10", "1.9"), None)
    nothing = index.offer("fleetnone", "3.12", options)
    assert (nothing.versions, nothing.fault) == ((), None)  # an answer: it offers none


def test_an_index_that_cannot_be_asked_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    offer = PackageIndex().offer("fleetalpha", "3.12", ("--index-url http://127.0.0.1:9/simple",))
    assert offer.versions == ()
    assert offer.fault is not None
    assert "Retrying" in offer.fault
    assert PackageIndex(offline=True).offer("fleetalpha", "3.12").fault == "it was not asked (--offline)"
