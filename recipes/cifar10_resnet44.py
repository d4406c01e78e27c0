"""A recipe for running the CIFAR-10 dataset with ResNet-44 and a momentum optimizer, with a test accuracy metric.

Hyperparameters are those of K. He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2:
minibatches of 128 for 64,000 steps (164 epochs), rate 0.1, a tenth of it after 32,000 steps (82 epochs) and a hundredth
after 48,000 (123), decay 1e-4; images padded by 4 pixels, cropped and mirrored at random. ResNet-44 reaches an error of
7.17 % there (table 6), and others find 6.90 % (https://github.com/akamaster/pytorch_resnet_cifar10) and 7.07 %
(https://github.com/longrootchen/cifar10-pytorch): acceptable is 93 %.
"""

import deep500 as d5
from recipes.recipe import run_recipe

# Using PyTorch as the framework
import deep500.frameworks.pytorch as d5fw  # isort: skip


def penalty(gradient, parameter):
    """Add what the paper calls weight decay: the gradient of half the squared norm, times 1e-4."""
    return gradient + 1e-4 * parameter


# Fixed Components
FIXED = {
    "model": "resnet",
    "model_kwargs": dict(depth=44),
    "dataset": "cifar10",
    "train_sampler": d5.ShuffleSampler,
    "train_transformations": [dict(name="random_crop", size=32, padding=4), "horizontal_flip"],
    "epochs": 164,
}

# Mutable Components
MUTABLE = {
    "batch_size": 128,
    "executor": d5fw.from_model,
    "executor_kwargs": dict(device=d5.GPUDevice()),
    "optimizer": d5fw.MomentumOptimizer,
    "optimizer_args": (0.1, 0.9),
    "optimizer_kwargs": dict(gradient_modifier=penalty),
    "schedule": {"learning_rate": dict(name="step_list", per="epoch", milestones=[82, 123])},
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 93.0),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
