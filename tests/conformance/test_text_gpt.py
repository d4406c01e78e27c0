"""A language model trained by the recipe ``text_gpt`` against a loop that is written by hand in PyTorch.

The loop below shares nothing with Deep500 but the text's bytes: its network is made of modules of ``torch.nn``, its
optimizer and its schedule are PyTorch's, its first weights and its order of samples are drawn by PyTorch.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from deep500.datasets.loading import load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.measure.tolerance import tolerance, unit_roundoff
from deep500.networks.network import Network
from deep500.recipe.build import build_recipe
from deep500.recipe.loading import load_recipe
from deep500.recipe.overrides import override_recipe
from deep500.training.metrics.bits_per_byte import BitsPerByte
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812 - PyTorch's own convention

FEATURES, HEADS, HIDDEN, LAYERS, CONTEXT, BATCH_SIZE, EPOCHS = 64, 4, 192, 2, 64, 32, 3
RATE, WARM_UP = 0.004, 50

#: Steps over which the loss curves of all frameworks are compared.
COMPARED_STEPS = 20

#: Number of roundings that follow one another from the bytes to the loss: in each layer two normalisations, products of
#: 64, 16 (scores), 64 (weighted values), 64, 64 and 192 terms and a softmax of 64; the last normalisation and product,
#: the softmax over 256 bytes, and the mean over the minibatch.
CHAIN = LAYERS * (2 * FEATURES + 64 + 16 + 64 + 64 + 64 + HIDDEN + CONTEXT) + 2 * FEATURES + 256 + BATCH_SIZE * CONTEXT


def allowed_difference(step: int) -> float:
    """Return by how much two frameworks' losses may differ, relatively, at a step from 0.

    In each framework a byte's loss is off by up to the bound of its chain of roundings. Those of different bytes are
    independent, so that their mean is off by a root of the number of bytes less, and is rounded itself. Each step
    before, whose backward pass is a chain of about twice that length, has changed the parameters by as much again; in
    these few steps at the lower end of the warm-up nothing amplifies what is there already.
    """
    one = tolerance("float32", CHAIN).relative / math.sqrt(BATCH_SIZE * CONTEXT) + unit_roundoff("float32")
    return 2 * one * (1 + math.sqrt(2) * step)


# By hand.


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.gated_norm = nn.RMSNorm(FEATURES, eps=1e-5), nn.RMSNorm(FEATURES, eps=1e-5)
        self.query, self.key, self.value, self.attended = (nn.Linear(FEATURES, FEATURES, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(FEATURES, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, FEATURES, bias=False)

    def forward(self, x: Any, turns: Any) -> Any:
        n, t, _ = x.shape
        y = self.attention_norm(x)
        q, k, v = (part(y).view(n, t, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(turned(q, turns), turned(k, turns), v, is_causal=True)
        x = x + self.attended(y.transpose(1, 2).reshape(n, t, FEATURES))
        y = self.gated_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, FEATURES)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(FEATURES, eps=1e-5)
        frequencies = 10000.0 ** (-torch.arange(0, FEATURES // HEADS, 2) / (FEATURES // HEADS))
        angles = torch.outer(torch.arange(CONTEXT), frequencies)
        self.turns = torch.polar(torch.ones_like(angles), angles)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                is_added = name.endswith(("attended.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * LAYERS) if is_added else 0.02)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.turns[: tokens.shape[1]])
        return self.norm(x) @ self.embedding.weight.T


def turned(x: Any, turns: Any) -> Any:
    """Turn the pairs (first half, second half) of each head's features, as complex numbers."""
    half = x.shape[-1] // 2
    product = torch.complex(x[..., :half], x[..., half:]) * turns
    return torch.cat([product.real, product.imag], dim=-1)


def cross_entropy(model: LanguageModel, inputs: Any, labels: Any) -> Any:
    return F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())


def train_by_hand(model: LanguageModel, batches: Iterable[tuple[Any, Any]], steps: int) -> list[float]:
    """Train; return the loss of each step. ``steps`` is how long the schedule is."""

    def share(step: int) -> float:
        if step < WARM_UP:
            return (step + 1) / (WARM_UP + 1)
        return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP)))

    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    losses = []
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = cross_entropy(model, inputs, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def windows() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the windows of the training text and those of the validation text, with what follows."""
    parts = load_dataset("text", context=CONTEXT)
    train, test = ((torch.from_numpy(part[:]["input"]), torch.from_numpy(part[:]["label"])) for part in parts)
    return train, test


@functools.cache
def bits_by_hand() -> float:
    """Return the bits a byte of the validation text after the loop by hand, with PyTorch's own random numbers."""
    (inputs, labels), (test_inputs, test_labels) = windows()
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(0)
        model = LanguageModel()
        an_epoch = len(inputs) // BATCH_SIZE

        def batches() -> Iterator[tuple[Any, Any]]:
            for _ in range(EPOCHS):
                order = torch.randperm(len(inputs))
                for some in order[: an_epoch * BATCH_SIZE].split(BATCH_SIZE):
                    yield inputs[some], labels[some]

        train_by_hand(model, batches(), EPOCHS * an_epoch)
        with torch.no_grad():
            losses = [
                cross_entropy(model, x, y).item() * len(x)
                for x, y in zip(test_inputs.split(BATCH_SIZE), test_labels.split(BATCH_SIZE))
            ]
    return sum(losses) / len(test_inputs) / math.log(2)


class one_thread:  # noqa: N801 - a context manager
    """PyTorch with one thread: threads that wait for each other would make its CPU time that of the machine's load."""

    def __enter__(self) -> None:
        self.before = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *raised: object) -> None:
        torch.set_num_threads(self.before)


def copy_weights(network: Network, model: LanguageModel) -> None:
    """Put a network's parameters in the place of the module's; a Linear's weight is the transposed one."""
    values = dict(zip(network.get_params(), network.fetch_tensors(network.get_params())))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = torch.from_numpy(np.array(values[name if name in values else name.replace("weight", "scale")]))
            is_linear = value.dim() > 1 and not name.startswith("embedding")
            parameter.copy_(value.T if is_linear else value)


# By the recipe.


@dataclass
class Trained:
    """What a run of the recipe gave."""

    losses: list[float]
    bits: float
    cpu_s: float
    initial_weights: str


@functools.cache
def by_recipe(framework: str, steps: int | None = None) -> Trained:
    """Run the recipe under a framework: wholly, or its first steps."""
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    recipe = override_recipe(load_recipe("text_gpt"), framework=framework)
    if steps is not None:
        total = EPOCHS * len(build_recipe(recipe).train_sampler)
        changes = {"steps": steps, "schedule.learning_rate.total": total}
        recipe = override_recipe(recipe, changes=changes)
    with one_thread():
        build = build_recipe(recipe)
        test = build.validation_sampler if steps is None else None
        trainer = Trainer(build.train_sampler, test, build.executor, build.optimizer, build.output)
        started_s = time.process_time()
        stats = trainer.run_loop(events=build.events, **recipe.budget)
        cpu_s = time.process_time() - started_s
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    bits = math.nan if test is None else BitsPerByte().measure(trainer, stats)
    return Trained(losses, bits, cpu_s, build.initial_weights_hash)


def test_the_recipe_is_what_is_written_by_hand_here() -> None:
    recipe = load_recipe("text_gpt")

    assert recipe["model_kwargs"] == {"features": FEATURES, "layers": LAYERS, "heads": HEADS, "context": CONTEXT}
    assert (recipe["batch_size"], recipe["epochs"], recipe["optimizer"]) == (BATCH_SIZE, EPOCHS, "adamw")
    assert recipe["optimizer_kwargs"] == {"learning_rate": RATE, "weight_decay": 0.1, "clip_norm": 1.0}
    assert recipe["schedule"] == {"learning_rate": {"name": "cosine", "warm_up_steps": WARM_UP}}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_it_predicts_as_well_as_the_loop_by_hand(framework: str) -> None:
    trained, bits = by_recipe(framework), bits_by_hand()
    print(f"{framework}: {trained.bits:.4f}, by hand: {bits:.4f} bits a byte; {trained.cpu_s:.0f} s of one core")

    assert trained.bits <= 1.01 * bits
    # Seconds of a core, so that a busy machine does not count: on two that are free it takes less.
    assert trained.cpu_s < 180
    ((metric, acceptable),) = load_recipe("text_gpt").metrics
    assert metric.accepts(trained.bits, acceptable)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "framework", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("tensorflow", "reference")), "by hand"]
)
def test_the_first_losses_are_those_of_pytorch(framework: str) -> None:
    expected = by_recipe("pytorch")
    if framework == "by hand":
        recipe = load_recipe("text_gpt")
        build = build_recipe(recipe)
        model = LanguageModel()
        copy_weights(build.executor.network, model)
        train, _ = load_dataset("text", context=CONTEXT)
        sampler = ShuffleSampler(train, BATCH_SIZE, seed=recipe["seed"], drop_last_batch=True)
        batches = [(torch.from_numpy(b["input"]), torch.from_numpy(b["label"])) for b, _ in zip(sampler, range(20))]
        with one_thread():
            losses = train_by_hand(model, batches, EPOCHS * len(sampler))
    else:
        trained = by_recipe(framework, COMPARED_STEPS if framework == "reference" else None)
        assert trained.initial_weights == expected.initial_weights
        losses = trained.losses

    found, wanted = np.array(losses[:COMPARED_STEPS]), np.array(expected.losses[:COMPARED_STEPS])
    differences = np.abs(found / wanted - 1)
    allowed = np.array([allowed_difference(step) for step in range(COMPARED_STEPS)])
    print(f"{framework}: relative differences of the losses up to {differences.max():.1e}, allowed {allowed[-1]:.1e}")
    assert len(found) == COMPARED_STEPS
    assert wanted[-1] < 0.8 * wanted[0]
    assert (differences <= allowed).all(), (differences / allowed).round(2)
