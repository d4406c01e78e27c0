"""The record of what passes: which cases do not, and why. Renewed by

    python -m tests.conformance.onnx_suite.record

which runs all cases under every framework, and writes ``failures.json`` and ``docs/operators.md``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.conformance.onnx_suite.runner import Process
from tests.conformance.onnx_suite.table import Results, write_table

__all__ = ["FRAMEWORKS", "RECORD", "TIMEOUT_S", "Results", "failures", "read_record", "run_all"]

#: The adapters, in the order of the table.
FRAMEWORKS = ("pytorch", "tensorflow", "reference", "onnxruntime")

RECORD = Path(__file__).with_name("failures.json")

#: How long one framework's run may take; the four together take less than five minutes on two cores.
TIMEOUT_S = 280.0


def run_all(at_once: int = 2) -> dict[str, Results]:
    """Run all cases under every framework, some of them at the same time."""
    waiting, running = list(FRAMEWORKS), {}
    results: dict[str, Results] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            framework = waiting.pop(0)
            running[framework] = Process(framework)
        framework = next(iter(running))
        results[framework] = running.pop(framework).result(TIMEOUT_S)
    return results


def failures(results: Results) -> dict[str, str]:
    """Return the reason of every case that does not pass, by its name."""
    return {name: _plain(reason) for kind in results.values() for name, reason in kind.items() if reason}


def read_record() -> dict[str, dict[str, str]]:
    """Return the record: for each framework, the reason of every case that is known not to pass."""
    found: dict[str, dict[str, str]] = json.loads(RECORD.read_text())
    return found


def _plain(reason: str) -> str:
    """Return a reason without what differs from machine to machine: places in sources, and addresses."""
    text = re.sub(r"/\S*/(\S+?\.(?:cc|h|cpp|py|cu))\b", r"\1", reason)
    text = re.sub(r"0x[0-9a-f]+", "0x...", text)
    return text[:160].strip()


def main() -> int:
    """Renew the record and the table."""
    results = run_all()
    record = {framework: dict(sorted(failures(found).items())) for framework, found in results.items()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    write_table(results, record)
    for framework, found in results.items():
        for kind, cases in found.items():
            print(f"{framework} {kind}: {sum(not reason for reason in cases.values())} of {len(cases)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
