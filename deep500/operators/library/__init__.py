"""One ONNX operator per file: NumPy forward and backward, as the specification has it."""
