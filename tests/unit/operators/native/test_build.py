from __future__ import annotations

import ctypes
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import CompileError, OperatorError
from deep500.operators.native import _compiler, build
from deep500.operators.native.build import compile_library, include_folder

#: A compiler that counts how often it compiles, and takes some time.
COUNTING = """#!/bin/sh
case "$*" in *" -c "*) echo x >> {log}; sleep {pause};; esac
exec g++ "$@"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("DEEP500_NATIVE_CACHE", str(folder))
    monkeypatch.setattr(_compiler, "CXX_NAMES", ("g++",))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "value.h").write_text("#define VALUE 1\n")
    file = tmp_path / "value.cpp"
    file.write_text('#include "value.h"\n#ifndef MORE\n#define MORE 0\n#endif\n' + FUNCTION)
    return file


FUNCTION = 'extern "C" __attribute__((visibility("default"))) int value() { return VALUE + MORE; }\n'


def value(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).value())


def count_compilations(folder: Path, monkeypatch: pytest.MonkeyPatch, pause: float = 0.0) -> Path:
    """Let a script stand in for the compiler; for every compilation it writes a line into the file that is returned."""
    compiler, log = folder / "counting-g++", folder / "log"
    log.write_text("")
    compiler.write_text(COUNTING.format(log=log, pause=pause))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return log


def test_second_time_from_the_cache(source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = count_compilations(tmp_path, monkeypatch)

    first = compile_library([source], "value")
    second = compile_library([source], "value")

    assert first == second
    assert value(first) == 1
    assert log.read_text() == "x\n"
    assert first.is_relative_to(cache)


def test_cached_library_is_found_without_running_the_compiler(source: Path, cache: Path, monkeypatch: Any) -> None:
    library = compile_library([source], "value")

    def run(*arguments: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", run)
    assert compile_library([source], "value") == library


def test_changed_header(source: Path, cache: Path) -> None:
    before = compile_library([source], "value")
    source.with_name("value.h").write_text("#define VALUE 2\n")
    after = compile_library([source], "value")
    source.with_name("value.h").write_text("#define VALUE 1\n")
    again = compile_library([source], "value")

    assert [value(before), value(after), value(again)] == [1, 2, 1]
    assert before == again  # one that was loaded, or named by a saved model, stays where it is
    assert before.exists()


def test_changed_source_flags_and_definitions(source: Path, cache: Path) -> None:
    libraries = [
        compile_library([source], "value"),
        compile_library([source], "value", flags=["-DMORE=10"]),
        compile_library([source], "value", definitions={"MORE": 20}),
        compile_library([source], "value", definitions={"MORE": 30}),
    ]
    source.write_text(source.read_text().replace("VALUE + MORE", "-VALUE"))
    libraries.append(compile_library([source], "value"))

    assert [value(library) for library in libraries] == [1, 11, 21, 31, -1]


def test_key_depends_on_texts_files_and_the_processor(source: Path, cache: Path, monkeypatch: Any) -> None:
    extra = source.with_name("extra.txt")
    extra.write_text("1")
    folders = {compile_library([source], "value").parent}
    folders.add(compile_library([source], "value", depends_on=["torch 2"]).parent)
    folders.add(compile_library([source], "value", headers=[extra]).parent)
    folders.add(compile_library([source], "value", native=False).parent)
    extra.write_text("2")
    folders.add(compile_library([source], "value", headers=[extra]).parent)
    monkeypatch.setattr(build, "processor_identity", lambda: "another one")
    folders.add(compile_library([source], "value").parent)

    assert len(folders) == 6


def test_changed_compiler(source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_compilations(tmp_path, monkeypatch)
    before = compile_library([source], "value").parent
    log = count_compilations(tmp_path, monkeypatch)

    assert compile_library([source], "value").parent != before
    assert log.read_text() == "x\n"


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed", "manifest", "no manifest", "empty manifest"])
def test_damaged_entry_is_built_again(source: Path, cache: Path, damage: str) -> None:
    library = compile_library([source], "value")
    content, manifest = library.read_bytes(), library.parent / "built.json"
    if damage == "truncated":
        library.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        library.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "removed":
        library.unlink()
    elif damage == "manifest":
        manifest.write_text(manifest.read_text()[:-20])
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("[]")

    again = compile_library([source], "value")

    assert again.read_bytes() == content
    assert json.loads(manifest.read_text())["library"] == again.name


def test_header_that_was_removed(source: Path, cache: Path) -> None:
    compile_library([source], "value")
    source.with_name("value.h").unlink()

    with pytest.raises(CompileError, match=r"value.cpp:1: value.h: No such file or directory"):
        compile_library([source], "value")


def test_processes_build_once(source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = count_compilations(tmp_path, monkeypatch, pause=1.0)
    program = (
        "import sys; from deep500.operators.native.build import compile_library;"
        "print(compile_library([sys.argv[1]], 'value'))"
    )
    command = [sys.executable, "-c", program, str(source)]

    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = {process.communicate(timeout=120)[0] for process in processes}

    assert len(outputs) == 1
    assert value(Path(outputs.pop().strip())) == 1
    assert log.read_text() == "x\n"


def test_threads_build_once(source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = count_compilations(tmp_path, monkeypatch, pause=0.3)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(compile_library([source], "value"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1
    assert log.read_text() == "x\n"


def test_what_a_killed_process_left_is_removed(source: Path, cache: Path) -> None:
    entry = compile_library([source], "value").parent
    (entry / ".work-killed").mkdir()
    (entry / ".work-killed" / "0-value.o").write_text("half")
    (entry / "built.json").unlink()

    compile_library([source], "value")

    assert not list(entry.glob(".work-*"))


def test_nothing_is_left_of_a_failure(source: Path, cache: Path) -> None:
    source.write_text("int f( {\n")

    with pytest.raises(CompileError, match=r"value.cpp:1: "):
        compile_library([source], "value")

    (entry,) = cache.iterdir()
    assert [path.name for path in entry.iterdir()] == [".lock"]


def test_several_sources_and_link_flags(source: Path, cache: Path) -> None:
    other = source.with_name("other.cpp")
    other.write_text('#include <dlfcn.h>\nint other() { return dlsym(nullptr, "nothing") == nullptr ? 5 : 6; }\n')
    source.write_text("int other();\n" + source.read_text().replace("VALUE + MORE", "VALUE + other()"))

    assert value(compile_library([source, other], "value", link_flags=["-ldl"])) == 6


def test_names_with_spaces_and_other_odd_characters(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "a b $(touch x) 'q' #1 ü"
    folder.mkdir()
    (folder / "my header.h").write_text("#define VALUE 3\n#define MORE 0\n")
    (folder / "my source.cpp").write_text('#include "my header.h"\n' + FUNCTION)

    before = value(compile_library([folder / "my source.cpp"], "value"))
    (folder / "my header.h").write_text("#define VALUE 4\n#define MORE 0\n")

    assert (before, value(compile_library([folder / "my source.cpp"], "value"))) == (3, 4)
    assert not list(tmp_path.rglob("x"))


def test_timeout(source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_compilations(tmp_path, monkeypatch, pause=60.0)

    with pytest.raises(CompileError, match=r"The compiler was stopped after 0.2 s. Command: .*counting-g\+\+"):
        compile_library([source], "value", timeout_s=0.2)


def test_waiting_for_another_process_has_an_end(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    entry = compile_library([source], "value").parent
    (entry / "built.json").unlink()
    with open(entry / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CompileError, match=r"Another process has been compiling into .* for 0.1 s"):
            compile_library([source], "value", timeout_s=0.1)


def test_keep_and_verbose(source: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        library = compile_library([source], "value", keep=True, verbose=True)

    (kept,) = library.parent.glob("objects-*")
    assert (kept / "0-value.o").is_file()
    assert "-march=native" in caplog.text


def test_flags(source: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        compile_library([source], "value", flags=["-std=c++20"], native=False, verbose=True)

    command = caplog.messages[0].split()
    assert "-march=native" not in command
    assert "-ffast-math" not in command
    assert command.index("-std=c++20") > command.index("-std=c++17")
    assert {"-O3", "-fopenmp", f"-I{include_folder()}"} <= set(command)


# --- where libraries may lie ------------------------------------------------------------------------------------------


def test_folders_are_private(source: Path, cache: Path) -> None:
    entry = compile_library([source], "value").parent

    assert stat.S_IMODE(entry.stat().st_mode) == 0o700


def test_folder_that_everybody_may_change(source: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)

    with pytest.raises(CompileError, match=r"shared for compiled operators can be changed by every user"):
        compile_library([source], "value", folder=shared)

    shared.chmod(0o1777)  # as /tmp: what is in it belongs to its owner
    library = compile_library([source], "value", folder=shared)
    library.parent.chmod(0o770)
    with pytest.raises(CompileError, match="belongs to another user or can be changed by others"):
        compile_library([source], "value", folder=shared)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_folder_of_another_user(source: Path, cache: Path) -> None:
    entry = compile_library([source], "value").parent
    os.chown(entry, 65534, 65534)

    with pytest.raises(CompileError, match="belongs to another user"):
        compile_library([source], "value")


def test_folder_that_is_a_link_or_a_file(source: Path, cache: Path, tmp_path: Path) -> None:
    entry = compile_library([source], "value").parent
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CompileError, match="is no folder"):
        compile_library([source], "value")
    entry.unlink()
    entry.write_text("")
    with pytest.raises(CompileError, match=r"cannot be made: File exists. Name another one in the variable DEEP500_NA"):
        compile_library([source], "value")


def test_default_folder(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEP500_NATIVE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    library = compile_library([source], "value")

    assert library.is_relative_to(tmp_path / "xdg" / "deep500" / "native")
    assert stat.S_IMODE((tmp_path / "xdg" / "deep500" / "native").stat().st_mode) == 0o700


# --- what is missing
# ----------------------------------------------------------------------------------------------------


def test_no_compiler(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(CompileError, match=r"needs a C\+\+ compiler, and none of g\+\+ was found. Install g\+\+"):
        compile_library([source], "value")


def test_no_nvcc(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVCC", raising=False)
    monkeypatch.setattr(_compiler.shutil, "which", lambda name, path=None: None)

    with pytest.raises(CompileError, match="needs nvcc, which was found neither on the PATH nor in CUDA_HOME"):
        compile_library([source], "value", cuda=True)
    cuda = source.with_suffix(".cu")
    cuda.write_text("")
    with pytest.raises(CompileError, match="needs nvcc"):
        compile_library([cuda], "value")


@pytest.mark.parametrize(
    ("value_of_cxx", "message"),
    [
        ("no-such-compiler -O1", "The variable CXX names the compiler 'no-such-compiler', which was not found"),
        ("'g++", 'The variable CXX is "\'g[+][+]", which is no command'),
    ],
)
def test_wrong_variable(source: Path, cache: Path, monkeypatch: Any, value_of_cxx: str, message: str) -> None:
    monkeypatch.setenv("CXX", value_of_cxx)

    with pytest.raises(CompileError, match=message):
        compile_library([source], "value")


def test_compiler_with_arguments(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ -DMORE=7")

    assert value(compile_library([source], "value")) == 8


def test_wrong_sources(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(
        CompileError, match=r"The operator 'value' cannot be compiled: .*lost.cpp cannot be read: No such"
    ):
        compile_library([tmp_path / "lost.cpp"], "value")
    with pytest.raises(CompileError, match="The operator 'value' has no source"):
        compile_library([], "value")
    with pytest.raises(OperatorError, match="cannot name an operator"):
        compile_library([tmp_path / "lost.cpp"], "a/b")
