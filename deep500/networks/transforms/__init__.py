"""One transformation per file."""
