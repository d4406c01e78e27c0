"""A recipe for training a small transformer on the embedded text, byte by byte: two layers of width 64.

The acceptable value is 1 % above what a loop written by hand in PyTorch (``tests/conformance/test_text_gpt.py``:
modules of ``torch.nn``, ``torch.optim.AdamW``) reaches with the same budget on the text of Python 3.11, which the
standard library brings; texts of other versions differ a little.
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Fixed Components
FIXED = {
    "model": "gpt",
    "model_kwargs": dict(features=64, layers=2, heads=4, context=64),
    "dataset": "text",
    "dataset_kwargs": dict(context=64),
    "train_sampler": d5.ShuffleSampler,
    "train_sampler_kwargs": dict(drop_last_batch=True),
}

# Mutable Components
MUTABLE = {
    "epochs": 3,
    "batch_size": 32,
    "executor": "pytorch",
    "optimizer": "adamw",
    "optimizer_kwargs": dict(learning_rate=0.004, weight_decay=0.1, clip_norm=1.0),
    "schedule": {"learning_rate": dict(name="cosine", warm_up_steps=50)},
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.BitsPerByte(), 2.11),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
