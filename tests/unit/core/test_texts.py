from __future__ import annotations

import pytest

from deep500.core.texts import counted, encodable, escaped, message_of, one_line, shown


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no message")

    __repr__ = __str__


def test_control_characters_become_escapes() -> None:
    assert escaped("a\nb\x1b[1m\x00\u2028\udcff é✓") == "a\\nb\\x1b[1m\\x00\\u2028\\udcff é✓"


def test_a_message_is_one_line_of_bearable_length() -> None:
    assert one_line("first\n  second\x07") == "first second\\x07"
    assert len(one_line("x" * 10**6)) < 2100
    assert one_line("a" * 3000 + "the end.").endswith("the end.")


def test_message_of_an_error() -> None:
    assert message_of(ValueError("a\nb")) == "a b"
    assert message_of(ValueError()) == "no message"
    assert message_of(UnspeakableError()) == "no message"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        ("a\nb", "'a\\nb'"),
        ("x" * 100, "a text of 100 characters"),
        (list(range(100)), "a list"),
        (10**5000, "an int"),
        (UnspeakableError(), "an UnspeakableError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_shown(value: object, expected: str) -> None:
    assert shown(value) == expected


def test_what_an_encoding_lacks_becomes_an_escape() -> None:
    assert encodable("é✓", "ascii") == "\\xe9\\u2713"
    assert encodable("é✓", "utf-8") == encodable("é✓", None) == "é✓"


def test_one_is_singular() -> None:
    assert [counted(n, "job") for n in (0, 1, 2, 1832)] == ["0 jobs", "1 job", "2 jobs", "1,832 jobs"]
    assert [counted(n, "launch", "launches") for n in (1, 2)] == ["1 launch", "2 launches"]
