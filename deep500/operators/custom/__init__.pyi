from .catalogue import find_custom_op, forget_custom_op, register_custom_op, registered_custom_ops
from .compiling import compile_custom_cppop, compile_custom_cppop_inline
from .cpp_op import CppOp
from .custom_op import CUSTOM_DOMAIN, CustomOp, CustomPythonOp
from .native_op import NativeOp

__all__ = [
    "CUSTOM_DOMAIN",
    "CppOp",
    "CustomOp",
    "CustomPythonOp",
    "NativeOp",
    "compile_custom_cppop",
    "compile_custom_cppop_inline",
    "find_custom_op",
    "forget_custom_op",
    "register_custom_op",
    "registered_custom_ops",
]
