"""Problem sets of single operators, one file or folder each, found by name; their figures lie beside them."""
