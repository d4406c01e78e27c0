"""A recipe for a regression: how a disease went on in 442 patients, by a multi-layer perceptron with Adam.

Labels are standardised, so that the loss, the mean squared error of the test set, is in units of the training set's
variance. The acceptable one is that of scikit-learn's ``LinearRegression`` on the same split, 0.432: the data hold
little beyond what is linear (``tests/conformance/test_recipes.py`` computes it anew).
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "mlp",
    "model_kwargs": dict(hidden=(256,)),
    "dataset": "diabetes",
    "dataset_kwargs": dict(standardize_labels=True),
    "train_sampler": d5.ShuffleSampler,
}

# Mutable Components
MUTABLE = {
    "epochs": 25,
    "batch_size": 32,
    "executor": "pytorch",
    "optimizer": "adamw",
    "optimizer_kwargs": dict(learning_rate=0.003, weight_decay=1.0),
    "schedule": {"learning_rate": "cosine"},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestLoss(), 0.432),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
