from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from deep500.core.errors import CommunicationError, MissingDependencyError
from deep500.distributed.communicators import _mpi_library


class Refusal(Exception):  # noqa: N818 - stands for MPI.Exception
    pass


def test_missing_library_is_said_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[mpi\]'"):
        _mpi_library.mpi.__wrapped__()


def test_errors_of_mpi_become_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mpi_library, "mpi", lambda: SimpleNamespace(Exception=Refusal))

    with (
        pytest.raises(CommunicationError, match=r"MPI refused broadcast: MPI_ERR_COUNT\."),
        _mpi_library.translated("broadcast"),
    ):
        raise Refusal("MPI_ERR_COUNT")
    with pytest.raises(KeyError), _mpi_library.translated("broadcast"):
        raise KeyError("not MPI's")


def test_what_is_not_caught_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    printed: list[str] = []
    monkeypatch.setattr(_mpi_library, "mpi", lambda: SimpleNamespace(Is_finalized=lambda: False))
    monkeypatch.setattr(_mpi_library, "abort_all", ended.append)
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: printed.append(str(error)))
    monkeypatch.setattr(threading, "excepthook", lambda failure: printed.append(str(failure.exc_value)))
    _mpi_library.end_all_when_one_fails.__wrapped__()

    sys.excepthook(ValueError, ValueError("first"), None)
    for error in (ValueError("second"), SystemExit(0)):
        thread = threading.Thread(target=_raise, args=(error,), name="helper")
        thread.start()
        thread.join()

    assert printed[:2] == ["first", "second"]
    assert ended == ["ValueError was not caught.", "ValueError was not caught in helper."]


def test_importing_the_transport_does_not_start_mpi() -> None:
    program = (
        "import sys, deep500.distributed.communicators.mpi as m; m.MPICommunicator; sys.exit('mpi4py' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


#: A library that is loaded later may collect what is written to stderr, and write it when the process has ended.
COLLECTING = """
import contextlib, io, sys
from deep500.distributed.communicators._mpi_library import end_all_when_one_fails

end_all_when_one_fails()
before = sys.excepthook

def collecting(*failure):
    with contextlib.redirect_stderr(io.StringIO()):
        before(*failure)

sys.excepthook = collecting
raise ValueError("planted on purpose")
"""


def test_last_words_are_not_lost_where_a_hook_collects_them() -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    done = subprocess.run([sys.executable, "-c", COLLECTING], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode != 0
    assert "ValueError: planted on purpose" in done.stderr
    assert "[rank 0] ValueError was not caught. All ranks are ended." in done.stderr


def _raise(error: BaseException) -> None:
    raise error
