from __future__ import annotations

import threading

from deep500.distributed.ledger import Ledger, LedgerSnapshot, OperationTotals


def test_totals_add_up_by_operation_and_peer() -> None:
    ledger = Ledger()
    ledger.record("allreduce", 100, sent={1: 60}, received={2: 50})
    ledger.record("allreduce", 10, sent={1: 6, 3: 1})
    ledger.record("send", 7, sent={3: 7})

    snapshot = ledger.snapshot()

    assert snapshot["allreduce"] == OperationTotals(2, 110, {1: 66, 3: 1}, {2: 50})
    assert snapshot["broadcast"] == OperationTotals()
    assert snapshot.total == OperationTotals(3, 117, {1: 66, 3: 8}, {2: 50})
    assert (snapshot.payload_bytes, snapshot.sent_bytes, snapshot.received_bytes) == (117, 74, 50)


def test_difference_holds_what_happened_between() -> None:
    ledger = Ledger()
    ledger.record("send", 5, sent={1: 5})
    before = ledger.snapshot()
    ledger.record("send", 3, sent={2: 3})
    ledger.record("barrier", 0)

    difference = ledger.snapshot() - before

    assert difference == LedgerSnapshot({"send": OperationTotals(1, 3, {2: 3}), "barrier": OperationTotals(1)})
    assert ledger.snapshot() - ledger.snapshot() == LedgerSnapshot()


def test_snapshot_does_not_change_afterwards() -> None:
    ledger = Ledger()
    ledger.record("send", 5, sent={1: 5})
    before = ledger.snapshot()
    ledger.record("send", 5, sent={1: 5})

    assert before["send"].sent == {1: 5}


def test_threads_lose_nothing() -> None:
    ledger = Ledger()

    def count() -> None:
        for _ in range(2000):
            ledger.record("send", 1, sent={0: 1})

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ledger.snapshot()["send"] == OperationTotals(8000, 8000, {0: 8000})
