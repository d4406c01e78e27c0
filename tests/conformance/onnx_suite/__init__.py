"""The ONNX project's own suite of cases for a runtime, run through each adapter's ``onnx.backend`` interface."""
