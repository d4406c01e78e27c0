"""One model per file, written in ONNX operators, free of any framework."""
