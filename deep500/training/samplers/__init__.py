"""One sampler per file."""
