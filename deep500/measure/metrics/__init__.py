"""One metric per file."""
