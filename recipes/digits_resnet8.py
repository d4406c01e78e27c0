"""A recipe for training ResNet-8 on the embedded digits (1,797 images of 8 x 8 pixels) with a falling learning rate.

The acceptable accuracy is that of scikit-learn's example "Recognizing hand-written digits"
(``plot_digits_classification.py``: a support vector machine, 97 % on half of the same images).
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "resnet",
    "model_kwargs": dict(depth=8),
    "dataset": "digits",
    "train_sampler": d5.ShuffleSampler,
}

# Mutable Components
MUTABLE = {
    "epochs": 12,
    "batch_size": 64,
    "executor": "pytorch",
    "optimizer": "momentum",
    "optimizer_args": (0.05, 0.9),
    "schedule": {"learning_rate": dict(name="cosine", per="epoch")},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 97.0),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
