"""ResNet-152, the residual network of 152 layers for ImageNet. Source: see ``imagenet_resnet``."""

from deep500.networks.models._depths import of_depth
from deep500.networks.models.imagenet_resnet import imagenet_resnet

__all__ = ["resnet152"]

resnet152 = of_depth(imagenet_resnet, "resnet152", 152)
