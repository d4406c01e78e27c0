"""Measuring one pass over a data set without slowing it down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deep500.core.stateful import State
from deep500.measure.clock import Stopwatch, now_ns
from deep500.networks.graph_executor import GraphExecutor
from deep500.training._pass_parts import record_of
from deep500.training.accuracy import count_correct
from deep500.training.statistics import PassRecord

__all__ = ["PassMeter"]

#: Losses of the framework that are kept unread; in longer passes the older half is read, which waits for the device.
_MOST_UNREAD = 4096


class PassMeter:
    """Collects what one pass over a data set gives, from its first minibatch to its last.

    Losses are kept as the framework's own scalars and read at the end (in passes of very many minibatches in large
    blocks), so that no step waits for the device. Counting right classifications does wait, since outputs of a whole
    pass may be too large to keep.
    """

    def __init__(
        self, executor: GraphExecutor, loss: str, scores: str | None = None, label_node: str | None = None
    ) -> None:
        """Start the clock, when the device is idle.

        Args:
            executor: What runs the network.
            loss: Name of the loss.
            scores: Name of the output to count right classifications from; ``None`` not to count.
            label_node: Name under which minibatches hold the labels.
        """
        self._executor = executor
        self._loss = loss
        self._scores = scores
        self._label_node = label_node
        self._unread: list[Any] = []
        self._losses: list[float] = []
        self._sizes: list[int] = []
        self._ranks: list[int] = []
        self._correct = 0
        self._counted = 0
        self._before_s = 0.0  # before the clock was started last
        self._watch = Stopwatch(executor.synchronize)
        self._start_ns: int | None = now_ns()

    @property
    def batches(self) -> int:
        """Number of minibatches so far."""
        return len(self._sizes)

    @property
    def most_ranks(self) -> int:
        """The largest number of ranks that ran minibatches together."""
        return max(self._ranks, default=1)

    def add(self, batch: Mapping[str, Any], outputs: Mapping[str, Any], ranks: int = 1) -> int:
        """Take note of a minibatch that was run, and of its outputs; return the number of its samples.

        Args:
            batch: The minibatch.
            outputs: What the network gave for it.
            ranks: How many ranks ran one of this size together.

        Raises:
            TrainingError: Scores and labels do not fit.
        """
        size = len(next(iter(batch.values())))
        self._sizes.append(size)
        self._ranks.append(ranks)
        if self._loss in outputs:
            self._unread.append(outputs[self._loss])
            if len(self._unread) >= _MOST_UNREAD:
                self._read(_MOST_UNREAD // 2)
        if self._scores is not None and self._label_node is not None:
            scores = self._executor.to_numpy(outputs[self._scores])
            correct, counted = count_correct(scores, np.asarray(batch[self._label_node]))
            self._correct += correct
            self._counted += counted
        return size

    def pause(self) -> float:
        """Stop the clock, when the device has finished; return the seconds so far."""
        if self._start_ns is not None:
            self._before_s += self._watch.elapsed_s()
            self._start_ns = None
        return self._before_s

    def go_on(self) -> None:
        """Start the clock after :meth:`pause`, or anew when nothing was measured yet."""
        self._watch.restart()
        self._start_ns = now_ns()

    def seconds(self) -> float:
        """Return the seconds so far by the host's clock, without waiting for the device."""
        running_ns = 0 if self._start_ns is None else now_ns() - self._start_ns
        return self._before_s + running_ns * 1e-9

    def state(self) -> State:
        """Return a snapshot of a pass that is under way."""
        self._read(len(self._unread))
        return {
            "losses": np.array(self._losses, np.float64),
            "sizes": np.array(self._sizes, np.int64),
            "ranks": np.array(self._ranks, np.int64),
            "correct": self._correct,
            "counted": self._counted,
            "elapsed_s": self.seconds(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot, with the time that it had taken; the clock stands until :meth:`go_on`."""
        self._unread, self._losses = [], np.asarray(state["losses"]).tolist()
        self._sizes = np.asarray(state["sizes"]).tolist()
        self._ranks = np.asarray(state.get("ranks", np.ones(len(self._sizes), np.int64))).tolist()
        self._correct, self._counted = int(state["correct"]), int(state["counted"])
        self._before_s, self._start_ns = float(state["elapsed_s"]), None

    def finish(self, *, complete: bool, merge: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> PassRecord:
        """Stop the clock, when the device has finished, and return what was measured.

        Args:
            complete: Whether the pass ended as planned.
            merge: Returns what all ranks measured together for what this one did
                (:mod:`deep500.training._pass_parts`).
        """
        duration_s = self.pause()
        self._read(len(self._unread))
        parts = {
            "losses": self._losses,
            "sizes": self._sizes,
            "ranks": self._ranks,
            "correct": self._correct,
            "counted": self._counted,
            "elapsed_s": duration_s,
        }
        return record_of(parts if merge is None else merge(parts), complete=complete)

    def _read(self, count: int) -> None:
        """Read the oldest losses that are still the framework's."""
        self._losses += [float(self._executor.to_numpy(loss)) for loss in self._unread[:count]]
        del self._unread[:count]
