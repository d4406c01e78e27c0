"""One rank of several that train on when others fail, under Open MPI's ``mpiexec --with-ft ulfm``.

``python -m tests.conformance.survivor_ranks KIND SCHEME REPORT``: rank 1 meets with the accident KIND in step 3 of 8.
Each rank has minibatches of its own. The first one that is left repeats the course in one process, with the minibatches
that counted put together, where the scheme is the same as that. Each rank writes what it saw into REPORT.RANK.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.distributed.failures import Shrink
from deep500.distributed.flat_buffers import Bucket
from deep500.distributed.launch_environment import create_communicator
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.schemes.allreduce import AllReduce
from deep500.distributed.schemes.hierarchical import Hierarchical
from deep500.distributed.schemes.top_k import TopK
from deep500.frameworks.reference.executor import from_model
from deep500.frameworks.reference.optimizers import MomentumOptimizer
from deep500.networks.creation import create_model

AFFECTED, STEP, STEPS, BATCH = 1, 3, 8, 4


class LateVictim(AllReduce):
    """Rank 1 ends when it has exchanged a part of its gradients: others are in the middle of the exchange."""

    def on_bucket(self, bucket: Bucket, context: StepContext) -> None:
        super().on_bucket(bucket, context)
        if (context.step, context.communicator.world_ranks[context.communicator.rank]) == (STEP, AFFECTED):
            os.kill(os.getpid(), signal.SIGKILL)


class AfterUpdate(AllReduce):
    """Rank 1 ends when the others may have updated already: they have to go back."""

    def after_update(self, context: StepContext) -> None:
        if (context.step, context.communicator.world_ranks[context.communicator.rank]) == (STEP, AFFECTED):
            os.kill(os.getpid(), signal.SIGKILL)


SCHEMES: dict[str, Any] = {
    "late": LateVictim,
    "after_update": AfterUpdate,
    "hierarchical": lambda: Hierarchical(group_size=2),
    "top_k": lambda: TopK(density=0.5),
}

#: Those of which one process is an oracle.
CONSISTENT = {"allreduce", "late", "after_update", "hierarchical", "zero_1"}


def network(batch_size: int) -> Any:
    model = create_model("mlp", batch_size=batch_size, shape=(1, 6, 6), classes=3)
    model.append_loss("SoftmaxCrossEntropyLoss")
    return model


def minibatch(rank: int, step: int) -> dict[str, Any]:
    random = np.random.default_rng([rank, step])
    return {
        "input": random.standard_normal((BATCH, 1, 6, 6), dtype=np.float32),
        "label": random.integers(0, 3, BATCH),
    }


def accident(kind: str) -> None:
    if kind == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "exception":
        raise ValueError("planted on purpose")
    if kind == "exception in a thread":
        thread = threading.Thread(target=lambda: accident("exception"), name="helper")
        thread.start()
        thread.join(60)
    if kind == "sys.exit":
        sys.exit(0)


def train(kind: str, scheme: str, report: dict[str, Any]) -> None:
    communicator = create_communicator(on_failure="shrink", timeout_s=60)
    me = communicator.rank
    made: Scheme | str = SCHEMES[scheme]() if scheme in SCHEMES else scheme
    momentum = 0.0 if scheme == "zero_1" else 0.9  # the state of lost ranks would be lost there
    base = MomentumOptimizer(from_model(network(BATCH)), "loss", learning_rate=0.1, momentum=momentum)
    optimizer = DistributedOptimizer(base, communicator, made, bucket_size_bytes=2000)
    members: list[tuple[int, ...]] = []
    shrinks: list[Shrink] = []
    optimizer.on_shrink.append(shrinks.append)
    for step in range(STEPS):
        if (me, step) == (AFFECTED, STEP):
            accident(kind)
        if kind == "two" and me in (1, 2) and step == 2 * me:
            accident("SIGKILL")
        optimizer.step(minibatch(me, step))
        members.append(tuple(communicator.world_ranks))
    report["members"] = members
    report["shrinks"] = [str(shrink) for shrink in shrinks]
    report["rank"], report["size"] = communicator.rank, communicator.size
    report["steps"] = optimizer.steps_begun
    parameters = [optimizer.executor.fetch(name) for name in base.network.get_params()]
    flat = np.concatenate([np.asarray(value).reshape(-1) for value in parameters])
    everyone = np.empty(flat.size * communicator.size, flat.dtype)
    communicator.allgather(flat, everyone)
    report["spread"] = float(np.ptp(everyone.reshape(communicator.size, -1), axis=0).max())
    report["error"] = one_process(members, momentum, flat) if scheme in CONSISTENT and communicator.rank == 0 else 0.0


def one_process(members: list[tuple[int, ...]], momentum: float, flat: Any) -> float:
    """Return by how much one process that trains on the same minibatches ends elsewhere."""
    state: dict[str, Any] | None = None
    parameters: dict[str, Any] = {}
    for step, ranks in enumerate(members):
        executor = from_model(network(BATCH * len(ranks)))
        base = MomentumOptimizer(executor, "loss", learning_rate=0.1, momentum=momentum)
        for name, value in parameters.items():
            executor.feed(name, value)
        if state is not None:
            base.restore(state)
        rows = [minibatch(rank, step) for rank in ranks]
        base.step({name: np.concatenate([row[name] for row in rows]) for name in rows[0]})
        state = base.state()
        parameters = {name: np.array(executor.fetch(name)) for name in executor.network.get_params()}
    expected = np.concatenate([value.reshape(-1) for value in parameters.values()])
    return float(np.abs(expected - flat).max())


def main() -> None:
    kind, scheme, path = sys.argv[1:4]
    report: dict[str, Any] = {"why": ""}
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    try:
        train(kind, scheme, report)
    except BaseException:
        report["why"] = traceback.format_exc()
        raise
    finally:
        Path(f"{path}.{rank}").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
