"""What outcomes are read from: one format per file, found by its name; ``__all__`` names one class of reader."""
