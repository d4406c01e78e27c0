"""A recipe for training a small convolutional network on Fashion-MNIST (60,000 pictures of clothes, 28 x 28 pixels).

The acceptable accuracy is the best one that the data set's own table of benchmarks (https://github.com/zalandoresearch/
fashion-mnist, "Benchmark") has for a network of less than 100,000 parameters: 92.5 %. This one has 94,000.
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "simple_cnn",
    "model_kwargs": dict(widths=(32, 64, 128)),
    "dataset": "fashion_mnist",
    "train_sampler": d5.ShuffleSampler,
}

# Mutable Components
MUTABLE = {
    "train_transformations": [dict(name="random_crop", size=28, padding=2, mode="edge"), "horizontal_flip"],
    "epochs": 40,
    "batch_size": 128,
    "executor": "pytorch",
    "optimizer": "momentum",
    "optimizer_args": (0.1, 0.9),
    "optimizer_kwargs": dict(weight_decay=5e-4),
    "schedule": {"learning_rate": dict(name="cosine", warm_up_steps=500)},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 92.5),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
