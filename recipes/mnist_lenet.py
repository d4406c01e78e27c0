"""A recipe for training LeNet-5 on MNIST (60,000 images of 28 x 28 pixels) with a momentum optimizer.

The acceptable accuracy is that of LeNet-5 without distorted images in Y. LeCun et al., "Gradient-based learning applied
to document recognition", Proceedings of the IEEE 86(11), 1998, section III: an error of 0.95 %.
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "lenet",
    "dataset": "mnist",
    "train_sampler": d5.ShuffleSampler,
}

# Mutable Components
MUTABLE = {
    "epochs": 20,
    "batch_size": 64,
    "executor": "pytorch",
    "optimizer": "momentum",
    "optimizer_args": (0.02, 0.9),
    "optimizer_kwargs": dict(weight_decay=5e-4),
    "schedule": {"learning_rate": dict(name="cosine", warm_up_steps=500)},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 99.05),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
