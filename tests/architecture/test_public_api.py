"""The public names are frozen: a change is made here as well, on purpose."""

from __future__ import annotations

from pathlib import Path

import deep500

FROZEN = Path(__file__).with_name("public_api.txt")
HOW_TO_UPDATE = f"""
The public names of deep500 differ from {FROZEN.name}. If the change is meant, write them down with

    python -c "import deep500; print(*sorted(deep500.__all__), sep='\\n')" > tests/architecture/{FROZEN.name}

review the difference (a name that goes away breaks users), and say it in CHANGELOG.md.
"""


def test_public_names_are_those_written_down() -> None:
    frozen = FROZEN.read_text().split() if FROZEN.exists() else []
    actual = sorted(deep500.__all__)
    added = [f"added:   {name}" for name in actual if name not in frozen]
    removed = [f"removed: {name}" for name in frozen if name not in actual]

    assert not added + removed, "\n".join([HOW_TO_UPDATE, *added, *removed])
    assert frozen == actual


def test_every_public_name_resolves() -> None:
    missing = [name for name in deep500.__all__ if not hasattr(deep500, name)]

    assert not missing


def test_dir_offers_every_public_name() -> None:
    assert set(deep500.__all__) <= set(dir(deep500))


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(deep500, "no_such_name")
