from .build import compile_library
from .library import LibraryDescription, NativeLibrary

__all__ = ["LibraryDescription", "NativeLibrary", "compile_library"]
