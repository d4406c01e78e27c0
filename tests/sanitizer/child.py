"""What runs under the sanitizers: generated calls in one framework, then a planted bug that has to be found.

A line of JSON on the standard output, the counts, stands between both. The process does not survive the bug.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.sanitizer.target import Target

__all__ = ["TARGETS", "main"]

#: Where the target of each framework is.
TARGETS = {"reference": "ReferenceTarget", "pytorch": "PyTorchTarget", "tensorflow": "TensorFlowTarget"}


def main() -> int:
    """Run the calls, and the planted bug."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--planted", required=True)
    parser.add_argument("--last-call", type=Path, required=True, help="file that tells which call is being made")
    arguments = parser.parse_args()
    module = importlib.import_module(f"tests.sanitizer.{arguments.target}_target")
    target: Target = getattr(module, TARGETS[arguments.target])()
    counts = run_calls(target, arguments.calls, arguments.seed, arguments.last_call)
    print(json.dumps({"counts": counts}), flush=True)
    arguments.last_call.write_text(f"the planted bug: {arguments.planted}")
    run_planted(target, arguments.planted)
    return 0


def run_calls(target: Target, calls: int, first_seed: int, last_call: Path) -> Counter[str]:
    """Run so many generated calls or a few more; return how they ended."""
    from tests.sanitizer.calls import Session

    # Bytes are written at once: what a crash leaves in a buffer is lost.
    log = os.open(last_call, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def tell(text: str) -> None:
        os.ftruncate(log, 0)
        os.pwrite(log, text.encode(), 0)

    session = Session(target, tell)
    number = first_seed
    while session.counts.total() < calls:
        missing = calls - session.counts.total()
        # No shrinking: a run that crashes cannot be repeated in this process, and one that is wrong is told as it is.
        rules = settings(
            max_examples=max(10, missing // 3),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )

        @rules
        @seed(number)
        @given(st.data())
        def program(data: Any) -> None:
            session.run(data)

        program()
        number += 1
    os.close(log)
    return session.counts


def run_planted(target: Target, what: str) -> None:
    """Run an operator that a sanitizer stops."""
    import numpy as np

    from tests.sanitizer.operators import planted

    value = target.given(np.array([2**31 - 1], np.int32), "plain").value
    target.function(planted(what))(value)


if __name__ == "__main__":
    sys.exit(main())
