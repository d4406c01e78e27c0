"""The rules of structure hold in the project, and each finds a violation that is planted on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.support import PROJECT

Rule = Callable[[Path], list[str]]

LONG_FUNCTION = "def long():\n" + "    x = 1\n" * 59
EMPTY = ""
MODELS = {"deep500/networks/creation.py": 'MODELS = Registry("model", "deep500.networks.models")\n'}

# Readings of a clock; the line on which each is found in a file that has one line before; what is found.
CLOCK_READINGS = [
    ("import time\nx = time.perf_counter()\n", 3, "time.perf_counter"),
    ("import time\nx = time.perf_counter_ns\n", 3, "time.perf_counter_ns"),
    ("def f():\n    import time\n    return time.time()\n", 4, "time.time"),
    ("import time as t\nx = t.time_ns()\n", 3, "t.time_ns"),
    ("from time import sleep, monotonic as now\n", 2, "time.monotonic"),
    ("from time import time\n", 2, "time.time"),
    ("from time import *\n", 2, "time.*"),
    ("import timeit\n", 2, "timeit"),
    ("from timeit import default_timer\n", 2, "timeit"),
    ("import time\ntime.clock_gettime(1)\n", 3, "time.clock_gettime"),
    ("import time\ntime.process_time()\n", 3, "time.process_time"),
    ("import time\ntime.thread_time_ns()\n", 3, "time.thread_time_ns"),
    ("asyncio.get_running_loop().monotonic()\n", 2, "asyncio.get_running_loop().monotonic"),
]

# For each rule: files that keep it, and files of which exactly one breaks it, with the place that must be named.
PLANTED: list[tuple[Rule, dict[str, str], dict[str, str], str]] = [
    (
        rules.files_too_long,
        {"deep500/core/a.py": "x = 1\n" * 399},
        {"deep500/core/a.py": "x = 1\n" * 400},
        "deep500/core/a.py:400",
    ),
    (
        rules.functions_too_long,
        {"deep500/core/a.py": LONG_FUNCTION.replace("    x = 1\n", "", 1)},
        {"deep500/core/a.py": "\n" + LONG_FUNCTION},
        "deep500/core/a.py:2",
    ),
    (
        rules.functions_too_long,
        {"deep500/core/a.py": "class A:\n    pass\n"},
        {"deep500/core/a.py": "class A:\n    async def long(self):\n" + "        x = 1\n" * 59},
        "deep500/core/a.py:2",
    ),
    (
        rules.prints_in_library,
        {"deep500/cli/a.py": "print(1)\n", "deep500/core/a.py": "x = 'print(1)'\n"},
        {"deep500/core/a.py": "def f():\n    print(1)\n"},
        "deep500/core/a.py:2",
    ),
    (
        rules.swallowed_exceptions,
        {"deep500/core/a.py": "try:\n    f()\nexcept OSError:\n    pass\nexcept Exception:\n    raise\n"},
        {"deep500/core/a.py": "try:\n    f()\nexcept:\n    pass\n"},
        "deep500/core/a.py:3",
    ),
    (
        rules.swallowed_exceptions,
        {"deep500/core/a.py": "for x in y:\n    try:\n        f()\n    except ValueError:\n        continue\n"},
        {"deep500/core/a.py": "try:\n    f()\nexcept (OSError, Exception) as error:\n    ...\n"},
        "deep500/core/a.py:3",
    ),
    (
        rules.swallowed_exceptions,
        {"deep500/core/a.py": "with contextlib.suppress(KeyError):\n    f()\n"},
        {"deep500/core/a.py": "with contextlib.suppress(Exception):\n    f()\n"},
        "deep500/core/a.py:1",
    ),
    (
        rules.unfinished_marks,
        {"deep500/core/a.py": "TODOS = 1\n"},
        {"deep500/core/a.py": "x = 1  # TODO: more\n"},
        "deep500/core/a.py:1",
    ),
    (
        rules.unfinished_marks,
        {"native_ops/power/a.cpp": "// done\n"},
        {"native_ops/power/a.cpp": "\n// FIXME\n"},
        "native_ops/power/a.cpp:2",
    ),
    (
        rules.adapters_that_differ,
        {
            "deep500/frameworks/a/__init__.py": EMPTY,
            "deep500/frameworks/a/device.py": EMPTY,
            "deep500/frameworks/a/_own.py": EMPTY,
            "deep500/frameworks/a/lowering/math.py": EMPTY,
            "deep500/frameworks/b/__init__.py": EMPTY,
            "deep500/frameworks/b/device.py": EMPTY,
            "deep500/frameworks/b/lowering/math.py": EMPTY,
        },
        {
            "deep500/frameworks/a/__init__.py": EMPTY,
            "deep500/frameworks/a/device.py": EMPTY,
            "deep500/frameworks/b/__init__.py": EMPTY,
        },
        "deep500/frameworks/b:1: has no device.py, which a has",
    ),
    (
        rules.adapters_that_differ,
        {"deep500/frameworks/a/__init__.py": EMPTY, "deep500/frameworks/helper.py": EMPTY},
        {
            "deep500/frameworks/a/__init__.py": EMPTY,
            "deep500/frameworks/b/__init__.py": EMPTY,
            "deep500/frameworks/b/lowering/math.py": EMPTY,
        },
        "deep500/frameworks/a:1: has no lowering/math.py, which b has",
    ),
    (
        rules.plugins_without_single_export,
        {
            **MODELS,
            "deep500/networks/models/a.py": '__all__ = ["a"]\n',
            "deep500/networks/models/_shared.py": EMPTY,
            "deep500/networks/models/__init__.py": EMPTY,
            "deep500/networks/layers.py": '__all__ = ["a", "b"]\n',
        },
        {**MODELS, "deep500/networks/models/a.py": '__all__ = ["a", "b"]\n'},
        "deep500/networks/models/a.py:1",
    ),
    (
        rules.plugins_without_single_export,
        {**MODELS, "deep500/networks/models/a/__init__.py": '__all__: list[str] = ["a"]\n'},
        {**MODELS, "deep500/networks/models/a/__init__.py": "def a(): ...\n"},
        "deep500/networks/models/a/__init__.py:1",
    ),
    (
        rules.unit_tests_without_source,
        {
            "deep500/core/a.py": EMPTY,
            "deep500/core/_b.py": EMPTY,
            "deep500/core/c/__init__.py": EMPTY,
            "tests/unit/core/test_a.py": EMPTY,
            "tests/unit/core/test_b.py": EMPTY,
            "tests/unit/core/test_c.py": EMPTY,
        },
        {"deep500/core/a.py": EMPTY, "tests/unit/measure/test_a.py": EMPTY},
        "tests/unit/measure/test_a.py:1: deep500/measure/a.py does not exist",
    ),
    (
        rules.imports_of_the_face,
        {
            "deep500/__init__.py": "import deep500\n",
            "deep500/core/__init__.py": EMPTY,
            "deep500/core/a.py": "import deep500.core\nfrom deep500 import core\nfrom deep500.core import b\n",
        },
        {"deep500/core/a.py": "x = 1\nfrom deep500 import Trainer\n"},
        "deep500/core/a.py:2",
    ),
    (
        rules.imports_of_the_face,
        {"deep500/core/a.py": "import numpy as np\n"},
        {"deep500/core/a.py": "def f():\n    import deep500 as d5\n"},
        "deep500/core/a.py:2",
    ),
    *(
        (
            rules.clocks_read_outside_measure,
            {
                "deep500/measure/clock.py": reading,
                "deep500/core/a.py": "import time\nimport datetime\ntime.sleep(1)\nx.time()\nx.monotone\n",
                "deep500/core/b.py": "from time import sleep\nfrom datetime import time\ntimeit = monotonic = 1\n",
            },
            {"deep500/measure/clock.py": reading, "deep500/core/a.py": f"x = 1\n{reading}"},
            f"deep500/core/a.py:{line}: {clock}",
        )
        for reading, line, clock in CLOCK_READINGS
    ),
]

RULES = list(dict.fromkeys(rule for rule, *_ in PLANTED))


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write a small project."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_project_keeps_the_rule(rule: Rule) -> None:
    violations = rule(PROJECT)

    assert not violations, "\n".join([rule.__doc__ or "", *violations])


@pytest.mark.parametrize(
    ("rule", "kept", "broken", "place"), PLANTED, ids=[f"{p[0].__name__}-{i}" for i, p in enumerate(PLANTED)]
)
def test_rule_finds_a_planted_violation_only(
    tmp_path: Path, rule: Rule, kept: dict[str, str], broken: dict[str, str], place: str
) -> None:
    assert rule(write_files(tmp_path / "kept", kept)) == []

    violations = rule(write_files(tmp_path / "broken", broken))

    assert len(violations) == 1
    assert violations[0].startswith(place)


def test_every_rule_is_used() -> None:
    public = [
        value
        for name, value in vars(rules).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == rules.__name__
    ]

    assert set(public) - {rules.plugin_folders} == set(RULES)


@pytest.mark.parametrize("folder", ["operators.library", "networks.models", "training.optimizers"])
def test_rule_for_plugins_sees_the_folders_that_hold_them(folder: str) -> None:
    assert f"deep500.{folder}" in rules.plugin_folders(PROJECT)
    assert list((PROJECT / "deep500" / folder.replace(".", "/")).glob("[!_]*.py"))


def test_there_are_four_adapters_to_compare() -> None:
    adapters = {path.parent.name for path in (PROJECT / "deep500" / "frameworks").glob("*/__init__.py")}

    assert adapters >= {"reference", "pytorch", "tensorflow", "onnxruntime"}
