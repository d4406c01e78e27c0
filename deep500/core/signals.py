"""Putting off Ctrl-C and a request to end while a file is written, or a library is imported that would crash."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["signals_deferred"]


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Act on a first SIGINT or SIGTERM at the end of the block only, and on a second one at once.

    Outside of the main thread, which Python gives no signals, nothing changes.
    """
    received: list[int] = []
    previous: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            signal.signal(number, previous[number])
            signal.raise_signal(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for awaited in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(awaited)
                if handler not in (None, signal.SIG_IGN):
                    previous[awaited] = handler
                    signal.signal(awaited, note)
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if len(received) == 1:
            signal.raise_signal(received[0])
