from .dataset import Dataset, DatasetIndexError
from .folder import data_folder
from .loading import DATASETS, load_dataset
from .numpy_dataset import NumpyDataset

__all__ = ["DATASETS", "Dataset", "DatasetIndexError", "NumpyDataset", "data_folder", "load_dataset"]
