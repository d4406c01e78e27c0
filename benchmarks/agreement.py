"""How far the losses of the first training steps part between frameworks, over learning rates and seeds.

The same network, weights and batches of the digits data set are trained with plain gradient descent under every
framework that is installed. A cell is the largest relative difference to the NumPy reference over the first steps.

    python -m benchmarks.agreement
"""

from __future__ import annotations

import argparse
import sys
from datetime import date

import numpy as np

MODELS = {"lenet": {}, "resnet": {"depth": 8}}


def losses(framework: str, model: str, dtype: str, learning_rate: float, seed: int, steps: int) -> np.ndarray:
    """Return the losses of the first steps."""
    import deep500 as d5
    from deep500.frameworks import FRAMEWORKS

    train, _ = d5.load_dataset("digits")
    network = d5.create_model(model, shape=train.sample_shape, dtype=dtype, seed=seed, **MODELS[model])
    network.append_loss("SoftmaxCrossEntropyLoss")
    optimizer = d5.GradientDescent(FRAMEWORKS.get(framework).from_model(network), "loss", learning_rate)
    batches = d5.ShuffleSampler(train, 64, seed=seed)
    return np.array(
        [
            float(optimizer.step({"input": b["input"].astype(dtype), "label": b["label"]})["loss"])
            for _, b in zip(range(steps), batches)
        ]
    )


def largest_difference(model: str, dtype: str, learning_rate: float, seed: int, steps: int) -> float:
    """Return the largest relative difference of any framework's losses to the reference's."""
    from deep500.frameworks import FRAMEWORKS

    expected = losses("reference", model, dtype, learning_rate, seed, steps)
    others = [n for n in FRAMEWORKS.names() if n != "reference" and FRAMEWORKS.get(n).REQUIREMENT.is_installed()]
    runs = [losses(name, model, dtype, learning_rate, seed, steps) for name in others]
    return max(float(np.max(np.abs(run - expected) / expected)) for run in runs)


def main() -> int:
    """Print one table a dtype."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default 5)")
    parser.add_argument("--steps", type=int, default=20, help="training steps compared (default 20)")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01, 0.03, 0.1], help="learning rates")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    print(f"{date.today()}, {arguments.steps} steps of batch 64\n")
    print(f"| dtype | model | learning rate | {' | '.join(f'seed {seed}' for seed in seeds)} |")
    print("|---|---|---|" + "---|" * arguments.seeds)
    for dtype in ("float32", "float64"):
        for model in MODELS:
            for rate in arguments.rates:
                cells = [f"{largest_difference(model, dtype, rate, seed, arguments.steps):.1e}" for seed in seeds]
                print(f"| {dtype} | {model} | {rate:g} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
