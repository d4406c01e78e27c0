"""One metric of a training per file."""
