from .augmentation import AUGMENTATIONS, Augmentation, RandomAugmentation
from .augmentations.colour_jitter import ColourJitter
from .augmentations.cutout import Cutout
from .augmentations.horizontal_flip import HorizontalFlip
from .augmentations.mixup import Mixup
from .augmentations.normalise import Normalise
from .augmentations.one_hot import OneHot
from .augmentations.random_crop import RandomCrop
from .augmentations.random_resized_crop import RandomResizedCrop
from .augmentations.resize import Resize
from .dataset import Dataset, DatasetIndexError
from .decoding import ImageDecoder
from .file_list_dataset import FileListDataset
from .folder import data_folder
from .loading import DATASETS, load_dataset
from .numpy_dataset import NumpyDataset
from .text_dataset import TextDataset

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "Augmentation",
    "ColourJitter",
    "Cutout",
    "Dataset",
    "DatasetIndexError",
    "FileListDataset",
    "HorizontalFlip",
    "ImageDecoder",
    "Mixup",
    "Normalise",
    "NumpyDataset",
    "OneHot",
    "RandomAugmentation",
    "RandomCrop",
    "RandomResizedCrop",
    "Resize",
    "TextDataset",
    "data_folder",
    "load_dataset",
]
