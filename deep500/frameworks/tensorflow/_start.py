"""Importing TensorFlow without its start-up chatter."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

__all__ = ["start_quietly", "without_chatter"]

#: What TensorFlow 2.21 says of its own start, before its log level can be set, and of its optimizer's sessions.
_CHATTER = re.compile(
    rb"All log messages before absl::InitializeLog|port\.cc.*oneDNN|cpu_feature_guard|rebuild TensorFlow with the|"
    rb"devices\.cc.*Number of eligible GPUs|single_machine\.cc.*Starting new session|mlir_graph_optimization_pass\.cc"
)


def start_quietly() -> None:
    """Import TensorFlow; what it reports of its start is dropped, anything else it writes is passed on.

    Who sets ``TF_CPP_MIN_LOG_LEVEL`` wants to read TensorFlow's messages and gets all of them.
    """
    if "tensorflow" in sys.modules:
        return
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        import tensorflow as tf

        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    with without_chatter():
        import tensorflow as tf  # noqa: F401


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Drop what TensorFlow reports of its start and of its sessions; anything else that is written is passed on.

    What is written to stderr, by whatever thread, comes when the block is left.
    """
    # The messages come from C++ through the file descriptor, so Python's sys.stderr cannot hold them back.
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            captured.seek(0)
            for line in captured:
                if not _CHATTER.search(line):
                    os.write(2, line)
