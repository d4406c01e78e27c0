"""One update rule per file, written once for the tensors of every framework."""
