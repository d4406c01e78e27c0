"""A recipe for training a multi-layer perceptron on the embedded digits with Adam: done in seconds everywhere.

Acceptable is an accuracy of 95 %, a little less than the 97 % of the support vector machine in scikit-learn's example
"Recognizing hand-written digits" (``plot_digits_classification.py``), for this network knows nothing of images.
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "mlp",
    "dataset": "digits",
    "train_sampler": d5.ShuffleSampler,
    "epochs": 15,
}

# Mutable Components
MUTABLE = {
    "batch_size": 32,
    "executor": "pytorch",
    "optimizer": "adam",
    "optimizer_kwargs": {"learning_rate": 0.002},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 95.0),
    (d5.TrainingAccuracy(), None),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
