"""A recipe for training ResNet-50 on ImageNet in 90 epochs.

The acceptable accuracy is MLPerf Training's quality target for this network and data set (v0.6 and later): 75.9 %.
Hyperparameters are those of P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017: rate
0.1 for 256 images, a linear warm-up of 5 epochs, a tenth after 30, 60 and 80 epochs, a penalty of 1e-4 that spares
biases and normalisations, random crops of 8 to 100 % of the image, mirrored at random.

Images are decoded to 256 x 256 pixels (the shorter side scaled to 256, the middle cut out) before they are cropped at
random, and to 224 x 224 of 256 for the test.
"""

import deep500 as d5
from recipes.recipe import run_recipe

#: Steps of an epoch of 1,281,167 images in minibatches of 256.
EPOCH = 5004


def photographs(input_node="input", label_node="label", size=224, read_size=256, **arguments):
    """Return the training set, larger than what is cut out of it at random, and the test set, cut out in the middle."""
    train, _ = d5.load_dataset("imagenet", input_node, label_node, size=read_size, **arguments)
    _, test = d5.load_dataset("imagenet", input_node, label_node, size=size, resize=read_size, **arguments)
    return train, test


def penalty(gradient, parameter):
    """Add the gradient of half the squared norm, times 1e-4; of weights only, not of what has one dimension."""
    return gradient + 1e-4 * parameter if len(parameter.shape) > 1 else gradient


# Fixed Components
FIXED = {
    "model": "resnet50",
    "dataset": photographs,
    "train_sampler": d5.ShuffleSampler,
    "train_sampler_kwargs": dict(drop_last_batch=True),
}

# Mutable Components
MUTABLE = {
    "model_kwargs": dict(shape=(3, 224, 224)),
    "dataset_kwargs": dict(size=224, read_size=256),
    "train_transformations": [dict(name="random_resized_crop", size=224), "horizontal_flip"],
    "input_pipeline": dict(workers=8, kind="process"),
    "epochs": 90,
    "batch_size": 256,
    "executor": "pytorch",
    "executor_kwargs": dict(device=d5.GPUDevice()),
    "optimizer": "momentum",
    "optimizer_args": (0.1, 0.9),
    "optimizer_kwargs": dict(gradient_modifier=penalty),
    "schedule": {
        "learning_rate": dict(
            name="warm_up",
            steps=5 * EPOCH,
            schedule=dict(name="step_list", milestones=[25 * EPOCH, 55 * EPOCH, 75 * EPOCH]),
        )
    },
    "seed": 0,
}

# Acceptable Metrics
METRICS = [
    (d5.TestAccuracy(), 75.9),
]


if __name__ == "__main__":
    run_recipe(FIXED, MUTABLE, METRICS) or exit(1)
