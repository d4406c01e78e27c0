"""The program of a fresh process that measures: a request on the standard input, messages on the standard output.

Each message is one line of JSON: ``{"progress": [...]}`` any number of times, then ``{"launch": ...}`` or
``{"error": ...}``. What the workload itself writes goes to the standard error.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import traceback
from typing import Any, TextIO

__all__ = ["main"]

#: Exit code of a process whose parent is gone.
_ORPHANED = 3


def main() -> int:
    """Serve one request."""
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Read without Python's stream: a thread that waits in it holds its lock, on which each forked child would hang, and
    # on which the interpreter's end would abort. The workload finds nothing on its standard input.
    source = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    request = json.loads(_line(source))
    threading.Thread(target=_end_with_parent, args=(source,), daemon=True).start()
    try:
        answer = {"launch": _measure(request, messages)}
    except BaseException as error:  # noqa: BLE001 - whatever it is, SystemExit too, the parent tells it
        answer = {"error": _described(error)}
    _send(messages, answer)
    return 0


def _measure(request: dict[str, Any], messages: TextIO) -> dict[str, Any]:
    from deep500.measure.results.document import plain
    from deep500.measure.sampling.launch import run_launch
    from deep500.measure.sampling.plan import SamplingPlan
    from deep500.measure.workload import open_workload

    def tell(phase: str, samples: int, detail: str) -> None:
        _send(messages, {"progress": [phase, samples, detail]})

    launch = run_launch(
        [functools.partial(open_workload, spec) for spec in request["specs"]],
        SamplingPlan(**request["plan"]),
        seed=request["seed"],
        number=request["number"],
        fresh=True,
        environment=request["environment"],
        tell=tell,
    )
    content = plain(launch)
    assert isinstance(content, dict)
    return content


def _described(error: BaseException) -> dict[str, Any]:
    from deep500.core.errors import Deep500Error
    from deep500.core.texts import message_of

    return {
        "type": type(error).__name__,
        "message": message_of(error),
        "is_mistake": isinstance(error, Deep500Error),
        "traceback": "".join(traceback.format_exception(error)),
    }


def _send(messages: TextIO, message: dict[str, Any]) -> None:
    # A workload may fork and return twice; the parent listens to the process that it started.
    messages.write(json.dumps({"pid": os.getpid(), **message}) + "\n")
    messages.flush()


def _line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(source, 65536)
        if not part:
            os._exit(_ORPHANED)
        line += part
    return line


def _end_with_parent(source: int) -> None:
    """Wait for the end of what the parent sends, which is the end of the parent, and leave at once.

    The thread sleeps in the system and takes no time from the samples.
    """
    while os.read(source, 4096):
        continue
    os._exit(_ORPHANED)


if __name__ == "__main__":
    sys.exit(main())
