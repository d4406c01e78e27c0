"""ResNet-34, the residual network of 34 layers for ImageNet. Source: see ``imagenet_resnet``."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet34"]

resnet34 = of_depth(imagenet_resnet, "resnet34", 34)
