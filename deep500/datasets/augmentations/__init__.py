"""One augmentation of images per file."""
