from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from deep500.core.errors import CheckpointError, DatasetError, TrainingError
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.training._batch_processes import _packed
from deep500.training._batch_threads import BatchThreads
from deep500.training.input_pipeline import InputPipeline
from deep500.training.sampler import Sampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.training_event import SamplerEvent
from tests.unit.training.pipeline_support import (
    Fails,
    Noise,
    NotPicklableError,
    Objects,
    ReadsInto,
    Slow,
    Unreadable,
    Varying,
    numbered,
)

ROOT = Path(__file__).parents[3]
KINDS = ["thread", "process"]
LIMIT_S = 30


def children() -> list[int]:
    """Worker processes of this one; a tracker of multiprocessing's stays."""
    return [child.pid for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def wait_until_gone(pids: list[int]) -> None:
    end = time.monotonic() + LIMIT_S
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        assert time.monotonic() < end, f"processes {pids} are left"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    names = set(os.listdir("/dev/shm"))
    yield
    gc.collect()
    assert children() == []
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("deep500-input")]
    assert not {name for name in os.listdir("/dev/shm") if "deep500" in name} - names


def make_sampler(count: int = 23, batch_size: int = 4, **arguments: Any) -> Sampler:
    arguments = {"seed": 3, "drop_last_batch": False, "transformations": [Noise(), Varying()], **arguments}
    return ShuffleSampler(numbered(count, 2), batch_size, **arguments)


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert list(one) == list(other)
        for name in one:
            assert (one[name].dtype, one[name].shape) == (other[name].dtype, other[name].shape)
            np.testing.assert_array_equal(one[name], other[name])
            assert one[name].flags.writeable


@pytest.mark.parametrize(
    ("kind", "workers"), [("thread", 0), ("thread", 1), ("thread", 3), ("process", 1), ("process", 3)]
)
def test_minibatches_are_the_samplers_whatever_builds_them(kind: str, workers: int) -> None:
    plain = make_sampler()
    with InputPipeline(make_sampler(), workers, kind, prefetch=5 if workers else None) as pipeline:
        assert (len(pipeline), pipeline.sample_count, pipeline.samples_an_epoch) == (6, 23, 23)
        for epoch in range(3):
            same(list(pipeline), list(plain))  # all of them are held at once
            assert (pipeline.epoch, pipeline.position) == (epoch, 6)
            with pytest.raises(StopIteration):
                next(pipeline)
            plain.reset()
            pipeline.reset()
        # In the middle of an epoch, with minibatches built ahead, to anywhere.
        same([next(pipeline), next(pipeline)], [next(plain), next(plain)])
        same([pipeline.batch_at(5)], [plain.batch_at(5)])
        assert pipeline.samples_at(5).tolist() == plain.samples_at(5).tolist()
        plain.reset()
        pipeline.reset()
        same([next(pipeline)], [next(plain)])
        plain.position = pipeline.position = 4
        same(list(pipeline), list(plain))


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_the_samplers_and_workers_are_no_part_of_it(kind: str) -> None:
    whole, saved = make_sampler(), make_sampler()
    whole.reset()
    with InputPipeline(saved, 2, kind) as pipeline:
        pipeline.reset()
        same([next(pipeline) for _ in range(2)], [next(whole) for _ in range(2)])
        state = json.loads(json.dumps(pipeline.state()))
        assert state == whole.state()
        expected = list(whole)
        for workers in (0, 1, 3):
            with InputPipeline(make_sampler(), workers, kind) as other:
                next(other)  # something was built ahead, for another epoch
                other.restore(state)
                same(list(other), expected)
        with pytest.raises(CheckpointError, match="batch_size was 4, here it is 5"):
            InputPipeline(make_sampler(batch_size=5), 2, kind).restore(state)


class Recorder(SamplerEvent):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_sampler_reset(self, sampler: Sampler) -> None:
        self.calls.append(("reset", sampler, sampler.epoch))

    def before_sampling(self, sampler: Sampler, minibatch_size: int) -> None:
        self.calls.append(("before", sampler, minibatch_size))

    def after_sampling(self, sampler: Sampler, samples: Any) -> None:
        self.calls.append(("after", sampler, len(samples["x"])))


@pytest.mark.parametrize("kind", KINDS)
def test_events_hear_of_the_pipeline_when_a_minibatch_is_taken(kind: str) -> None:
    recorder = Recorder()
    with InputPipeline(make_sampler(5, 4, events=[recorder]), 2, kind) as pipeline:
        next(pipeline)
        assert recorder.calls == [("before", pipeline, 4), ("after", pipeline, 4)]
        list(pipeline)
        pipeline.reset()
    assert recorder.calls[2:] == [("before", pipeline, 1), ("after", pipeline, 1), ("reset", pipeline, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_transformation_added_later_is_in_all_further_minibatches(kind: str) -> None:
    plain = make_sampler(transformations=[])
    with InputPipeline(make_sampler(transformations=[]), 2, kind) as pipeline:
        same([next(pipeline)], [next(plain)])
        plain.add_transformation(Noise())
        pipeline.add_transformation(Noise())
        same(list(pipeline), list(plain))


@pytest.mark.parametrize("kind", KINDS)
def test_exception_surfaces_in_its_turn_with_its_traceback(kind: str) -> None:
    with InputPipeline(OrderedSampler(numbered(20), 2, transformations=[Fails(9)]), 2, kind, 8) as pipeline:
        for _ in range(2):  # it can be asked again
            pipeline.position = 0
            for _ in range(4):
                next(pipeline)
            with pytest.raises(ZeroDivisionError, match="sample 9") as caught:
                next(pipeline)
            cause = str(caught.value.__cause__)
            if kind == "process":
                assert 'pipeline_support.py", line' in cause
                assert "in __call__" in cause
            assert pipeline.position == 4


@pytest.mark.parametrize("kind", KINDS)
def test_end_of_iteration_in_a_worker_does_not_end_the_epoch(kind: str) -> None:
    with (
        InputPipeline(OrderedSampler(numbered(6), 2, transformations=[Fails(3, "stop")]), 2, kind) as pipeline,
        pytest.raises(TrainingError, match="raised StopIteration in minibatch 1"),
    ):
        list(pipeline)


def test_exception_that_cannot_be_sent_is_told() -> None:
    with (
        InputPipeline(OrderedSampler(numbered(6), 2, transformations=[Fails(3, "odd")]), 1, "process") as pipeline,
        pytest.raises(DatasetError, match="A worker raised NotPicklableError: here: odd") as caught,
    ):
        list(pipeline)
    assert NotPicklableError.__name__ in str(caught.value.__cause__)


@pytest.mark.parametrize(("how", "message"), [("kill", "ended with SIGKILL.*out of memory"), ("exit", "exit code 3")])
def test_a_worker_that_dies_is_told(how: str, message: str) -> None:
    with InputPipeline(OrderedSampler(numbered(20), 2, transformations=[Fails(9, how)]), 2, "process") as pipeline:
        with pytest.raises(DatasetError, match=message):
            list(pipeline)
        assert children() == []
        assert pipeline.position < 5
        pipeline.position = 5
        assert [batch["x"].tolist() for batch in pipeline][-1] == [[18], [19]]


def test_a_worker_killed_between_two_minibatches_is_told() -> None:
    with InputPipeline(OrderedSampler(numbered(400), 2, transformations=[Slow(0.01)]), 2, "process") as pipeline:
        next(pipeline)
        os.kill(children()[0], signal.SIGKILL)
        with pytest.raises(DatasetError, match="ended with SIGKILL"):
            list(pipeline)


@pytest.mark.parametrize("kind", KINDS)
def test_workers_end_with_the_pipeline(kind: str) -> None:
    pipeline = InputPipeline(make_sampler(), 2, kind)
    batch = next(pipeline)
    kept = {name: values.copy() for name, values in batch.items()}
    pids = children()
    assert len(pids) == (2 if kind == "process" else 0)
    gone = weakref.ref(pipeline)
    del pipeline
    gc.collect()
    assert gone() is None
    wait_until_gone(pids)
    same([batch], [kept])  # its memory lives as long as the array


def test_minibatches_are_built_ahead_up_to_a_bound() -> None:
    built: list[int] = []

    def note(batch: dict[str, Any]) -> dict[str, Any]:
        built.append(int(batch["x"].flat[0]))
        return batch

    with InputPipeline(OrderedSampler(numbered(20), 1, transformations=[note]), 2, "thread", 3) as pipeline:
        for taken in range(1, 15):
            next(pipeline)
            time.sleep(0.01)
            assert taken <= len(built) <= taken + 3
        assert len(built) == 17


@pytest.mark.parametrize("held", [0, 1, 10])
def test_memory_is_used_again(held: int) -> None:
    with InputPipeline(OrderedSampler(numbered(100), 1, transformations=[Noise()]), 1, "process", 2) as pipeline:
        kept: list[Any] = []
        for number, batch in enumerate(pipeline):
            kept = [*kept, batch][-held:] if held else []
            assert [int(one["x"].item()) for one in kept] == list(range(number + 1 - len(kept), number + 1))
        assert len(pipeline._running._workers[0].pieces) <= 2 + 1 + 2  # type: ignore[union-attr, attr-defined]


def test_no_workers_cost_nothing() -> None:
    pipeline = InputPipeline(make_sampler(transformations=[lambda batch: batch]), 0, "process")
    next(pipeline)
    assert pipeline._running is None
    assert pipeline.prefetch == 0


def test_data_set_reads_straight_into_shared_memory_where_nothing_comes_between() -> None:
    dataset = ReadsInto(np.arange(40).reshape(20, 2), "x", np.arange(20) % 3, "y")
    with InputPipeline(OrderedSampler(dataset, 3), 1, "process") as pipeline:
        found = [next(pipeline) for _ in range(4)]
        assert np.concatenate([batch["x"] for batch in found]).tolist() == dataset.data[:12].tolist()
        assert np.concatenate([batch["y"] for batch in found]).tolist() == [9] * 12
        with pytest.raises(ZeroDivisionError, match="sample 13"):
            next(pipeline)
        pipeline.position = 5
        assert [batch["x"][0].tolist() for batch in pipeline] == [[30, 31], [36, 37]]
    with InputPipeline(OrderedSampler(dataset, 3, transformations=[Noise()]), 1, "process") as pipeline:
        assert next(pipeline)["y"].tolist() == [0, 1, 2]


def test_large_arrays_are_shared_and_files_are_mapped(tmp_path: Path) -> None:
    file = np.memmap(tmp_path / "data", np.float32, "w+", 64, (1000, 250))
    file[...] = np.arange(250_000).reshape(1000, 250)
    file.flush()
    mapped = np.memmap(tmp_path / "data", np.float32, "r", 64, (1000, 250))
    from deep500.datasets.numpy_dataset import NumpyDataset

    parcel, shared = _packed(OrderedSampler(NumpyDataset(np.array(file), "x"), 10))
    shared.close_descriptor()
    assert parcel.sizes[1:] == (1_000_000,)
    assert parcel.sizes[0] < 10_000
    for data in (mapped, mapped[10:], mapped[20:800][7:], mapped[:, :100]):
        parcel, shared = _packed(OrderedSampler(NumpyDataset(data, "x"), 10))
        shared.close_descriptor()
        assert len(parcel.sizes) == 1
        assert parcel.sizes[0] < 10_000
        with InputPipeline(OrderedSampler(NumpyDataset(data, "x"), 10), 1, "process") as pipeline:
            np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in pipeline]), data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": numbered(3)}, "received NumpyDataset"),
        ({"sampler": InputPipeline(make_sampler(), 0)}, "received InputPipeline"),
        ({"workers": -1}, "workers was given as -1"),
        ({"workers": True}, "workers"),
        ({"kind": "processes"}, "Did you mean 'process'"),
        ({"prefetch": 0}, "prefetch was given as 0"),
        (
            {"sampler": make_sampler(transformations=[lambda batch: batch]), "kind": "process"},
            r"lambda.*cannot be sent to worker processes.*kind='thread'",
        ),
    ],
)
def test_arguments_that_are_not_accepted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        InputPipeline(**({"sampler": make_sampler(), "workers": 2} | arguments))


class Remembers:
    def __call__(self, batch: Any) -> Any:
        return batch

    def state(self) -> Any:
        return {}

    def restore(self, state: Any) -> None:
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_transformation_that_remembers_is_for_no_workers(kind: str) -> None:
    with pytest.raises(TrainingError, match=r"Remembers remembers something.*workers=0"):
        InputPipeline(make_sampler(transformations=[Remembers()]), 1, kind)
    pipeline = InputPipeline(make_sampler(), 1, kind)
    with pytest.raises(TrainingError, match="Remembers remembers something"):
        pipeline.add_transformation(Remembers())
    assert len(list(InputPipeline(make_sampler(transformations=[Remembers()]), 0, kind))) == 6


def test_transformation_that_cannot_be_copied_for_threads() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def __call__(self, batch: Any) -> Any:
            return batch

    with pytest.raises(TrainingError, match="cannot be copied for each thread"):
        next(InputPipeline(make_sampler(transformations=[Locked()]), 1))


def test_data_set_that_cannot_be_sent_is_told() -> None:
    dataset = numbered(4)
    dataset.extra = lambda: None  # type: ignore[attr-defined]
    with pytest.raises(TrainingError, match=r"OrderedSampler with its data set \(NumpyDataset\) cannot be sent"):
        next(InputPipeline(OrderedSampler(dataset, 2), 1, "process"))
    with pytest.raises(FileNotFoundError, match="on the other machine") as caught:
        next(InputPipeline(OrderedSampler(Unreadable(), 2), 1, "process"))
    assert "__setstate__" in str(caught.value.__cause__)


def test_objects_in_minibatches_are_refused() -> None:
    with pytest.raises(DatasetError, match="holds Python objects"):
        next(InputPipeline(OrderedSampler(numbered(4), 2, transformations=[Objects()]), 1, "process"))


SCRIPT = """
import sys
from deep500.training.input_pipeline import InputPipeline
from deep500.training.samplers.ordered import OrderedSampler
from tests.unit.training.pipeline_support import Slow, numbered

def main():
    pipeline = InputPipeline(OrderedSampler(numbered(100000), 2, transformations=[Slow(0.02)]), 2, "process")
    next(pipeline)
    print(*(worker.process.pid for worker in pipeline._running._workers), flush=True)
    for _ in pipeline:
        pass

GUARD
    main()
"""


def start(guard: str, folder: Path) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(SCRIPT.replace("GUARD", guard))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_consumer_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    process = start('if __name__ == "__main__":', tmp_path)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.1)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == -number
    wait_until_gone(pids)
    if number is signal.SIGINT:
        assert said.count("Traceback") == 1  # the consumer's own
        assert said.rstrip().endswith("KeyboardInterrupt")
    else:
        assert said == ""


def test_script_without_the_guard_is_told(tmp_path: Path) -> None:
    process = start("if True:", tmp_path)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "`if __name__ == '__main__':`" in said.splitlines()[-1]


class Stuck:
    """A transformation that never returns, in this test's time."""

    def __call__(self, batch: Any) -> Any:
        time.sleep(60)
        return batch


def test_threads_that_never_return_do_not_keep_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep500.training._batch_threads._GRACE_S", 0.2)
    dataset = NumpyDataset(np.arange(8), "x", np.zeros(8, int), "y")
    threads = BatchThreads(OrderedSampler(dataset, 2, transformations=[Stuck()]), 2)
    threads.submit(0, 0, 0)
    started = time.monotonic()
    threads.close()

    assert time.monotonic() - started < 10
