"""ResNet-18, the residual network of 18 layers for ImageNet. Source: see ``imagenet_resnet``."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet18"]

resnet18 = of_depth(imagenet_resnet, "resnet18", 18)
