"""Fresh processes that measure: started, listened to, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from deep500.core.errors import MeasurementError
from deep500.core.texts import one_line
from deep500.measure.results.document import ProcessRecord, system_from_dict
from deep500.measure.sampling.launch import Launch
from deep500.measure.sampling.plan import SamplingPlan
from deep500.measure.sampling.sessions import Tell

__all__ = ["launch_process"]

#: How long a process that has answered may take to end, in seconds.
_PATIENCE_S = 5

#: How much of what a process wrote before it failed is told, in characters.
_LAST_WORDS = 2000


def launch_process(
    specs: Sequence[str],
    plan: SamplingPlan,
    *,
    seed: int,
    number: int,
    environment: bool,
    tell: Tell,
) -> Launch:
    """Measure workloads side by side in a process that is started for it.

    The process has a session of its own, so that Ctrl-C reaches the caller alone, who then ends it; and it ends by
    itself when the caller does, however that happens.

    Args:
        specs: Texts of the workloads.
        plan: How to sample.
        seed: Seed of the random order.
        number: Number of the launch.
        environment: Whether the process is to take the environment record.
        tell: Is told how far it is.

    Raises:
        MeasurementError: The workloads cannot be built or run, or the process died.
    """
    request = {"specs": list(specs), "plan": plan.to_dict(), "seed": seed, "number": number, "environment": environment}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "deep500.measure.sampling.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(plan.environment),
            start_new_session=True,
        )
        try:
            answer = _converse(process, request, tell)
            with contextlib.suppress(subprocess.TimeoutExpired):  # a thread of the workload may never end; it is ended
                process.wait(timeout=_PATIENCE_S)
        finally:
            _end(process)
        if answer is None:
            raise MeasurementError(
                f"The process that measured {', '.join(specs)} died ({_end_of(process.returncode)}) before it had "
                f"finished. {_last_words(log)}"
            )
    if "error" in answer:
        raise _failure(specs, answer["error"])
    launch = answer["launch"]
    return Launch(
        tuple(map(system_from_dict, launch["systems"])), ProcessRecord(**launch["process"]), launch["environment"]
    )


def _converse(process: subprocess.Popen[bytes], request: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    """Send the request and listen to the end; return the answer, ``None`` when there was none."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()  # and it stays open: its end tells the process that nobody listens any more
    except BrokenPipeError:
        return None
    for line in process.stdout:
        message = _message(line)
        if message.get("pid") != process.pid:  # a workload's own child, or what a workload writes to where it must not
            continue
        if "progress" not in message:
            assert isinstance(message, dict)
            return message
        tell(*message["progress"])
    return None


def _message(line: bytes) -> dict[str, Any]:
    """Return a message; an empty one for a line that is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the process: those of this one, quiet frameworks, and what the plan asks for."""
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, **more}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
    _signal_group(process.pid, signal.SIGKILL)  # what the workload started and left behind


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:  # it has just ended by itself
        return


def _end_of(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def _last_words(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _LAST_WORDS))
    text = one_line(log.read().decode("utf-8", "replace"))
    return f"Its last words: {text}" if text else "It said nothing."


def _failure(specs: Sequence[str], error: Mapping[str, Any]) -> MeasurementError:
    if error["is_mistake"]:
        return MeasurementError(error["message"])
    found = MeasurementError(f"{', '.join(specs)} cannot be measured: {error['type']}: {error['message']}")
    found.add_note(error["traceback"]) if hasattr(found, "add_note") else None
    return found
