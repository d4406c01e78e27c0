"""A training in a process of its own, which tests kill: dropout, augmentation, checkpoints, and workers if asked for.

``python resume_job.py FRAMEWORK OPTIMIZER FOLDER OUT [kill_at_step] [option ...]`` trains, or goes on with what FOLDER
has, and writes the bytes of all parameters to OUT. With a step, the process kills itself right after it. Options:
``workers``, and the planted omissions ``no-optimizer``, ``no-position``, ``no-random``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import numpy as np

from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.networks.network import Network
from deep500.training.checkpoints.loading import checkpoint_folders, load_latest
from deep500.training.events.checkpoint import CheckpointEvent
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer
from deep500.training.training_event import RunnerEvent

EPOCHS, CLASSES, BATCH = 6, 3, 16


class Jitter:
    """Adds noise of the sampler's stream to the images."""

    def set_random_stream(self, stream: np.random.Generator) -> None:
        self.stream = stream

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        noise = self.stream.normal(0, 0.1, batch["input"].shape).astype(np.float32)
        return {**batch, "input": batch["input"] + noise}


def network(seeded: bool) -> Network:
    """Return a small network with batch normalisation and dropout."""
    from onnx import TensorProto, helper

    random = np.random.default_rng(0)
    tensors = {
        "k": random.normal(0, 0.3, (4, 1, 3, 3)),
        "scale": np.ones(4),
        "shift": np.zeros(4),
        "mean": np.zeros(4),
        "var": np.ones(4),
        "w": random.normal(0, 0.2, (4 * 36, CLASSES)),
        "ratio": np.array(0.4),
    }
    constants = [
        helper.make_tensor(n, TensorProto.FLOAT, v.shape, v.astype(np.float32).ravel()) for n, v in tensors.items()
    ]
    constants.append(helper.make_tensor("train", TensorProto.BOOL, [], [True]))
    seed = {"seed": 5} if seeded else {}
    nodes = [
        helper.make_node("Conv", ["input", "k"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Dropout", ["f", "ratio", "train"], ["d"], **seed),
        helper.make_node("MatMul", ["d", "w"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", CLASSES])],
        constants,
    )
    made = Network.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    made.append_loss("SoftmaxCrossEntropyLoss")
    return made


def data(count: int) -> NumpyDataset:
    """Return images that are told apart by a bright spot."""
    random = np.random.default_rng(count)
    labels = np.arange(count) % CLASSES
    images = random.normal(0, 0.5, (count, 1, 8, 8)).astype(np.float32)
    images[np.arange(count), 0, labels * 2, labels * 2] += 2
    return NumpyDataset(images, "input", labels, "label", CLASSES)


class ForgetfulTrainer(Trainer):
    """Keeps not all that it should, as a planted mistake."""

    omission = ""

    def state(self) -> Any:
        state = super().state()
        if self.omission == "no-position":
            state["train_sampler"]["position"] = 0
        if self.omission == "no-random":
            state["executor"]["random"] = {**state["executor"]["random"], "streams": {}}
            state["executor"]["random"]["generator"] = self.first_generator
        return state

    def restore(self, state: Any) -> None:
        if self.omission == "no-optimizer":
            state = {**state, "optimizer": self.optimizer.state()}
        if self.omission == "no-position":  # as if nobody had asked
            state = {**state, "pass": None}
        super().restore(state)


class Killer(RunnerEvent):
    """Kills the process after a step, as ``kill -9`` does."""

    comes_last = True

    def __init__(self, at: int) -> None:
        self.at = at

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        if step + 1 == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def main(framework: str, optimizer: str, folder: str, out: str, kill_at: int, options: list[str]) -> None:
    """Train."""
    adapter = importlib.import_module(f"deep500.frameworks.{framework}")
    executor = adapter.from_model(network(seeded="unseeded" not in options))
    executor.seed_random(7)
    rules = {"momentum": MomentumOptimizer, "adam": AdamOptimizer}
    rule = rules[optimizer](executor, "loss", 0.01)
    sampler: Any = ShuffleSampler(data(100), BATCH, seed=3, drop_last_batch=False, transformations=[Jitter()])
    if "workers" in options:
        from deep500.training.input_pipeline import InputPipeline

        sampler = InputPipeline(sampler, workers=2)
    trainer = ForgetfulTrainer(sampler, OrderedSampler(data(30), BATCH), executor, rule)
    trainer.omission = next((option for option in options if option.startswith("no-")), "")
    trainer.first_generator = executor.random_state().get("generator")
    if checkpoint_folders(folder):
        trainer.restore(load_latest(folder).state)
    every = {"every_epochs": 1} if "epochs" in options else {"every_steps": 4}
    events = [CheckpointEvent(folder, keep=2, **every), *([Killer(kill_at)] if kill_at else [])]
    stats = trainer.run_loop(EPOCHS, events)
    losses = [loss for record in stats.epochs for loss in record.training.step_losses]
    net = executor.network
    tensors = net.fetch_tensors([*net.parameters, *net.states])
    with open(out, "wb") as file:
        for tensor in (*tensors, np.array(losses)):
            file.write(np.ascontiguousarray(tensor).tobytes())
    if "workers" in options:
        sampler.close()


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), sys.argv[6:])
