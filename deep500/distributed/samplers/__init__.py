"""One distributed sampler per file."""
