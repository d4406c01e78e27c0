"""A recipe for training LeNet-5 on the embedded digits (1,797 images of 8 x 8 pixels) with a momentum optimizer.

The optimizer is written once for all frameworks, so that the recipe runs under each that is installed. The acceptable
accuracy is that of scikit-learn's example "Recognizing hand-written digits" (``plot_digits_classification.py``: a
support vector machine, 97 % on half of the same images).
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "lenet",
    "dataset": "digits",
    "train_sampler": d5.ShuffleSampler,
    "epochs": 30,
}

# Mutable Components
MUTABLE = {
    "batch_size": 32,
    "executor": "pytorch",
    "optimizer": "momentum",
    "optimizer_args": (0.02, 0.9),
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 97.0),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
