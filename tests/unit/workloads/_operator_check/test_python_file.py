from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.custom import registered_custom_ops
from deep500.workloads._operator_check.python_file import execute_file

REGISTERING = """
import deep500 as d5
class RegisteredInAFile(d5.CustomPythonOp):
    def forward(self, x):
        return x
d5.register_custom_op(RegisteredInAFile)
"""


def write(folder: Path, text: str | bytes, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message(path: Path) -> str:
    with pytest.raises(OperatorError) as caught:
        execute_file(path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_file_is_executed_once_for_each_content(tmp_path: Path) -> None:
    path = write(tmp_path, "value = object()\nname = __name__\n")
    first = execute_file(path)

    assert execute_file(path) is first
    assert first.name != "__main__"
    assert sys.modules[first.name] is first
    assert execute_file(write(tmp_path, "value = object()\n")) is not first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (\n", "fails.py:1: SyntaxError: '(' was never closed"),
        ("x = 1\n  y = 2\n", "fails.py:2: IndentationError: unexpected indent"),
        ("x = 1\nimport no_such_module\n", "fails.py:2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    1 / 0\n\n\nf()\n", "fails.py:2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "fails.py:2: exits while it is read"),
        ("import deep500 as d5\nd5.tensordesc('no dtype', 3)\n", "fails.py:2: 'no dtype' is not a dtype"),
        ("import json\njson.loads('{')\n", "fails.py:2: JSONDecodeError: Expecting"),
        (b"\x00", "fails.py"),
        (b"\xff\xfe = 1", "fails.py"),
        ("x = " + "(" * 500 + ")" * 500, "fails.py"),
    ],
)
def test_what_fails_is_told_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert said in message(write(tmp_path, text, "fails.py"))
    assert not [name for name in sys.modules if name.startswith("fails_")]


def test_a_compiler_that_fails_is_told_at_the_line_that_called_it(tmp_path: Path) -> None:
    text = "import deep500 as d5\nop = d5.compile_custom_cppop_inline('broken', 'int x = +;')\n"
    found = message(write(tmp_path, text))

    assert "mine.py:2: The operator 'broken' did not compile: broken.cpp:1:" in found
    assert CompileError is not None


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in message(tmp_path)


def test_ctrl_c_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        execute_file(write(tmp_path, "raise KeyboardInterrupt\n"))


def test_modules_beside_it_are_found_and_forgotten(tmp_path: Path) -> None:
    texts = []
    for number in ("1", "2"):
        folder = tmp_path / number
        folder.mkdir()
        write(folder, f"value = {number}\n", "beside_the_file.py")
        path = list(sys.path)
        texts.append(execute_file(write(folder, "import beside_the_file\nvalue = beside_the_file.value\n")).value)
        assert sys.path == path
        assert "beside_the_file" not in sys.modules

    assert texts == [1, 2]


def test_operators_of_one_name_live_side_by_side(tmp_path: Path) -> None:
    before = registered_custom_ops()
    modules = [execute_file(write(tmp_path, REGISTERING, f"{number}.py")) for number in (1, 2)]

    assert modules[0].RegisteredInAFile is not modules[1].RegisteredInAFile
    assert registered_custom_ops() == before


def test_a_file_of_a_package_is_a_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "a_package_of_operators" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("outer = 1\n")
    (folder / "__init__.py").write_text("from .. import outer\nfrom .part import part\n")
    (folder / "part.py").write_text("from .. import outer\npart = outer + 1\n")
    path = list(sys.path)
    try:
        assert execute_file(folder / "part.py").part == 2
        assert execute_file(folder / "__init__.py").part == 2
        assert execute_file(folder / "part.py").__name__ == "a_package_of_operators.inner.part"
        assert sys.path == path
        (folder / "broken.py").write_text("\nfrom .. import nothing\n")
        assert "broken.py:2: ImportError: cannot import name 'nothing'" in message(folder / "broken.py")
        other = tmp_path / "elsewhere" / "a_package_of_operators"
        other.mkdir(parents=True)
        (other / "__init__.py").write_text("")
        assert "another file of this name is imported already" in message(other / "__init__.py")
    finally:
        for name in [name for name in sys.modules if name.startswith("a_package_of_operators")]:
            del sys.modules[name]
