"""One metric of a distributed training per file."""
