"""Ask the CPU for a cache line ahead of its use.

For lines that are next to one another where nothing else would fetch them: downwards. Random lines
come faster by reading them (see `touch` in `detector/kernels/seek.py`).
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ANN401, ARG001
    """Prefetch the cache line of `array[index]`, a one-dimensional array."""
    signature = types.void(array, index)

    def codegen(context: Any, builder: Any, made: Any, args: Any) -> Any:  # noqa: ANN401
        value = context.make_array(made.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, value.strides, 1)[0]
        base = builder.ptrtoint(value.data, ir.IntType(64))
        address = builder.add(base, builder.mul(args[1], stride))
        pointer = builder.inttoptr(address, ir.PointerType())
        number = ir.IntType(32)
        prototype = ir.FunctionType(ir.VoidType(), [ir.PointerType(), number, number, number])
        function = cgutils.get_or_insert_function(builder.module, prototype, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return signature, codegen
