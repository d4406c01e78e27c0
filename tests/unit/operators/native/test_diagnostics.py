from __future__ import annotations

from pathlib import Path

import pytest

from deep500.operators.native._diagnostics import compile_error

SOURCE = Path("/home/a b/odd.cpp")
HEADER = "/opt/include/deep500/operator.h"


@pytest.mark.parametrize(
    ("output", "headline"),
    [
        ("/x/odd.cpp:7:3: error: 'y' was not declared", "odd.cpp:7: 'y' was not declared"),
        ("/x/odd.cpp:7: fatal error: no.h: No such file", "odd.cpp:7: no.h: No such file"),
        ('/x/odd.cpp(7): error: identifier "y" is undefined', 'odd.cpp:7: identifier "y" is undefined'),
        (f"{HEADER}:3:1: error: static assertion failed: deep500: too few", "operator.h:3: deep500: too few"),
        (
            f"{HEADER}:3:1: error: static assertion failed: f\n/x/odd.cpp:9:1: note: in expansion of macro",
            "odd.cpp:9: f",
        ),
        (
            f"In file included from /x/odd.cpp:1:\n/x/odd.cpp:8:2:   required from here\n{HEADER}:3:1: error: bad",
            "odd.cpp:8: bad",
        ),
        (f"In file included from /x/odd.cpp:1:\n{HEADER}:3:1: error: bad", "odd.cpp:1: bad"),
        (
            f'{HEADER}(3): error: static assertion failed with "deep500: f"\n at line 5 of /x/odd.cpp',
            "odd.cpp:5: deep500: f",
        ),
        ("/x/odd.cpp:1:1: warning: unused\n/x/odd.cpp:2:1: error: bad", "odd.cpp:2: bad"),
        (
            "ld: odd.o: undefined reference to `f()'\ncollect2: error: ld returned 1",
            "linking failed: undefined reference",
        ),
        ("/usr/bin/ld: cannot find -lfoo: No such file", "linking failed: cannot find -lfoo"),
        ("Segmentation fault", "Segmentation fault"),
        ("", "the compiler said nothing"),
    ],
)
def test_headline(output: str, headline: str) -> None:
    error = compile_error("odd", [Path("/x/odd.cpp")], ["g++", "/x/odd.cpp"], output)

    assert str(error).startswith(f"The operator 'odd' did not compile: {headline}")
    assert str(error).endswith("Command: g++ /x/odd.cpp")


def test_long_output_is_cut_in_the_message_only() -> None:
    error = compile_error("odd", [SOURCE], ["g++", str(SOURCE)], "error\n" * 5000)

    assert len(str(error)) < 7000
    assert "[...]" in str(error)
    assert len(error.output) == 30000
    assert str(error).endswith("Command: g++ '/home/a b/odd.cpp'")
