from __future__ import annotations

import signal
import threading

import pytest

from deep500.core.signals import signals_deferred


def raise_in_block(number: signal.Signals, times: int, steps: list[str]) -> None:
    with signals_deferred():
        for _ in range(times):
            signal.raise_signal(number)
        steps.append("after the signal")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_acts_at_the_end_of_the_block(number: signal.Signals) -> None:
    previous = signal.signal(number, signal.default_int_handler)
    steps: list[str] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            raise_in_block(number, 1, steps)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, previous)

    assert steps == ["after the signal"]


def test_a_second_signal_acts_at_once() -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        raise_in_block(signal.SIGINT, 2, steps)

    assert steps == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_deferred():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


def test_another_thread_may_use_it() -> None:
    done: list[bool] = []

    def work() -> None:
        with signals_deferred():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [True]
