"""One algorithm of an exchange per file: a function from ranks, elements and their bytes to a ``Schedule``."""
