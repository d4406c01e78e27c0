from .catalogue import find_custom_op, forget_custom_op, register_custom_op, registered_custom_ops
from .compiling import compile_custom_cppop, compile_custom_cppop_inline
from .cpp_op import CppOp
from .custom_op import CUSTOM_DOMAIN, CustomOp, CustomPythonOp
from .findings import Check, Finding, NotRunError, Outcome
from .native_op import NativeOp
from .prepared_call import PreparedCall

__all__ = [
    "CUSTOM_DOMAIN",
    "Check",
    "CppOp",
    "CustomOp",
    "CustomPythonOp",
    "Finding",
    "NativeOp",
    "NotRunError",
    "Outcome",
    "PreparedCall",
    "compile_custom_cppop",
    "compile_custom_cppop_inline",
    "find_custom_op",
    "forget_custom_op",
    "register_custom_op",
    "registered_custom_ops",
]
