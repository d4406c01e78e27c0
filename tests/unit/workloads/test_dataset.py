from __future__ import annotations

import numpy as np
import pytest

from deep500.datasets.loading import load_dataset
from deep500.measure.results.document import content_hash
from deep500.measure.workload import open_workload
from deep500.training import catalogue
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.sampler import Sampler
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from tests.unit.workloads.support import opened, plain, refusal


def test_run_reads_the_next_minibatch_over_the_ends_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    read = Sampler.__next__
    workload = open_workload("dataset:digits,batch_size=500")

    def noted(self: Sampler) -> object:
        batch = read(self)
        places.append((self.epoch, self.position, len(batch["input"])))
        return batch

    monkeypatch.setattr(Sampler, "__next__", noted)
    for _ in range(5):
        workload.run()

    assert places == [(0, 1, 500), (0, 2, 500), (1, 1, 500), (1, 2, 500), (2, 1, 500)]


def test_identity_is_the_data_set_and_how_it_is_gone_through() -> None:
    identity = open_workload("dataset:digits").identity

    assert identity == {
        "problem": "reading minibatches",
        "dataset": "digits",
        "sampler": "shuffle",
        "batch_size": 64,
        "seed": 0,
    }
    texts = ["dataset:digits", "dataset:digits,sampler=ordered", "dataset:digits,batch_size=3", "dataset:digits,seed=1"]
    assert len({content_hash(dict(open_workload(text).identity)) for text in texts}) == 4


def test_data_hash_is_that_of_the_first_epoch() -> None:
    event = BatchHashEvent()
    list(ShuffleSampler(load_dataset("digits")[0], 64, seed=3, events=[event]))

    workload = open_workload("dataset:digits,seed=3")
    before = plain(workload)
    for _ in range(30):
        workload.run()

    assert workload.data_hash == event.digest
    assert plain(workload) == before


def test_ordered_sampler_leaves_out_the_last_minibatch_too() -> None:
    event = BatchHashEvent()
    list(OrderedSampler(load_dataset("digits")[0], 64, drop_last_batch=True, events=[event]))

    assert open_workload("dataset:digits,sampler=ordered").data_hash == event.digest


def test_arguments_of_the_data_set_are_factors() -> None:
    workload = open_workload("dataset:digits,test_samples=1000")

    assert workload.factors["dataset_test_samples"] == "1000"
    assert workload.factors["dataset_class"] == "deep500.datasets.numpy_dataset.NumpyDataset"
    assert workload.factors["numpy_version"] == np.__version__
    assert workload.identity == open_workload("dataset:digits").identity
    assert workload.data_hash != open_workload("dataset:digits").data_hash


def test_work_is_samples_and_their_bytes() -> None:
    work = opened("dataset:digits,batch_size=10").work

    assert (work.items, work.item, work.flops, work.dtype) == (10, "sample", None, "float32")
    assert work.bytes == 10 * (64 * 4 + 8)


def test_sampler_that_takes_neither_seed_nor_that_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(OrderedSampler):
        def __init__(self, dataset: object, batch_size: int) -> None:
            super().__init__(dataset, batch_size)  # type: ignore[arg-type]

    monkeypatch.setattr(catalogue.SAMPLERS, "get", lambda name: Plain)

    assert opened("dataset:digits,sampler=plain").identity["sampler"] == "plain"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset:digit", "no dataset named 'digit'. Did you mean 'digits'?"),
        ("dataset:digits,batchsize=3", "unknown option 'batchsize'. Did you mean 'batch_size'?"),
        ("dataset:digits,batch_size=0", "batch_size was given as 0"),
        ("dataset:digits,batch_size=1438", "the data set has 1437 samples"),
        ("dataset:digits,sampler=shufle", "no sampler named 'shufle'. Did you mean 'shuffle'?"),
        ("dataset:digits,sampler=3", "sampler was given as 3"),
        ("dataset:digits,seed=a", "seed was given as 'a'"),
        ("dataset:digits,test_samples=0", "test_samples was given as 0"),
        ("dataset:digits,input_node=x", "unknown option 'input_node'"),
        ("dataset:digits@pytorch", "no framework runs the workloads of the kind dataset. Leave out @pytorch"),
        ("dataset:cifar10,folder=no/such/folder", "CIFAR-10 is not there"),
    ],
)
def test_what_does_not_exist_or_fit_is_refused(text: str, message: str) -> None:
    assert message in refusal(text)
