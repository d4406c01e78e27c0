from __future__ import annotations

import math

import numpy as np
import pytest

from deep500.core.errors import TrainingError
from deep500.training.pass_meter import PassMeter
from tests.unit.training.support import LinearExecutor


def add(meter: PassMeter, labels: list[int], loss: float) -> None:
    scores = np.tile([0.0, 1.0, 0.0], (len(labels), 1))
    meter.add({"input": np.zeros((len(labels), 4)), "label": np.array(labels)}, {"output": scores, "loss": loss})


def test_means_are_over_samples_not_over_batches() -> None:
    meter = PassMeter(LinearExecutor(), "loss", "output", "label")
    add(meter, [1, 1, 1], 1.0)
    add(meter, [0], 5.0)

    record = meter.finish(complete=True)

    assert (record.batches, record.samples, record.complete) == (2, 4, True)
    assert record.loss == 2.0
    assert record.accuracy_percent == 75.0
    assert record.step_losses == [1.0, 5.0]
    assert record.duration_s > 0


def test_clock_is_read_when_the_device_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    moments = iter([1_000_000_000, 3_500_000_000])

    def now_ns() -> int:
        log.append("read")
        return next(moments)

    executor = LinearExecutor()
    monkeypatch.setattr(executor, "synchronize", lambda: log.append("wait"))
    monkeypatch.setattr("deep500.measure.clock.now_ns", now_ns)
    meter = PassMeter(executor, "loss")
    log.append("run")

    assert meter.finish(complete=True).duration_s == 2.5
    assert log == ["wait", "read", "run", "wait", "read"]


def test_scalars_are_read_at_the_end_only() -> None:
    executor = LinearExecutor()
    meter = PassMeter(executor, "loss")
    for _ in range(5):
        add(meter, [1], 1.0)

    assert executor.scalars_read == 0
    record = meter.finish(complete=False)
    assert executor.scalars_read == 5
    assert (record.accuracy_percent, record.complete) == (None, False)


@pytest.mark.parametrize("losses", [[1.0, math.nan], [math.inf, -math.inf]])
def test_losses_that_are_no_numbers_stay_so(losses: list[float]) -> None:
    meter = PassMeter(LinearExecutor(), "loss")
    for loss in losses:
        add(meter, [1], loss)

    loss = meter.finish(complete=True).loss
    assert loss is not None
    assert math.isnan(loss)


def test_nothing_added() -> None:
    record = PassMeter(LinearExecutor(), "loss", "output", "label").finish(complete=False)

    assert (record.batches, record.loss, record.accuracy_percent) == (0, None, None)


def test_loss_that_is_not_computed_is_none() -> None:
    meter = PassMeter(LinearExecutor(), "other")
    add(meter, [1], 1.0)

    assert meter.finish(complete=True).loss is None


def test_labels_that_do_not_fit_are_said() -> None:
    meter = PassMeter(LinearExecutor(), "loss", "output", "label")
    with pytest.raises(TrainingError, match="A label is 3"):
        add(meter, [3], 1.0)


def test_how_many_ranks_ran_minibatches_together_is_kept() -> None:
    meter, again, older = (PassMeter(LinearExecutor(), "loss") for _ in range(3))
    for ranks in (1, 3, 2):
        meter.add({"input": np.zeros((2, 4))}, {"loss": 1.0}, ranks)
    state = meter.state()
    again.restore(state)
    older.restore({name: value for name, value in state.items() if name != "ranks"})

    assert (meter.most_ranks, again.most_ranks, older.most_ranks) == (3, 3, 1)
    assert again.finish(complete=True, merge=lambda parts: {**parts, "sizes": parts["ranks"]}).samples == 6
