"""One probe per file: a function from the system to the fields that it can read."""
