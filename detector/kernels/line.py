"""Look at a whole cache line at once: comparisons that need no branch and no loop over rows.

LLVM makes one or two vector instructions of each where the CPU has them, and a loop elsewhere.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

KEYS = 0b01010101
"""Bits of a set of words that stand for key words: words 0, 2, 4 and 6 of a line."""

VALUES = 0b10101010
"""Bits that stand for value words."""

WHOLE = (-1, -1)
"""The mask under which words are compared whole."""

_WORD = ir.IntType(64)
_BIT = ir.IntType(1)
_LINE = ir.VectorType(_WORD, 8)


def _look(typing_context: Any, table: Any, at: Any, mask: Any, key: Any, most: Any) -> Any:  # noqa: ANN401, ARG001
    """Return which of the eight words from `table[at]` on match, as two sets of bits, low first.

    `mask` is a pair, for key words and for value words, that every word is cut to. In the first
    set are the key words that are `key` and the value words that are 0; in the second one, from
    bit 8 on, the words that are `most` or less, unsigned.
    """
    masks = types.UniTuple(types.int64, 2)
    signature = types.uint64(table, types.uint64, masks, types.int64, types.int64)

    def codegen(context: Any, builder: Any, made: Any, args: Any) -> Any:  # noqa: ANN401
        data = context.make_array(made.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), _LINE.as_pointer())
        line = builder.load(pointer, typ=_LINE)
        line.align = 8
        both = [builder.extract_value(args[2], 0), builder.extract_value(args[2], 1)]
        cut = builder.and_(line, _repeat(builder, both))
        zero = ir.Constant(_WORD, 0)
        equal = builder.icmp_unsigned("==", cut, _repeat(builder, [args[3], zero]))
        little = builder.icmp_unsigned("<=", cut, _repeat(builder, [args[4], args[4]]))
        first, second = (
            builder.zext(builder.bitcast(each, ir.IntType(8)), _WORD) for each in (equal, little)
        )
        return builder.or_(first, builder.shl(second, ir.Constant(_WORD, 8)))

    return signature, codegen


def _lowest(typing_context: Any, bits: Any) -> Any:  # noqa: ANN401, ARG001
    """Return the number of the lowest bit that is set, 64 if none is."""

    def codegen(context: Any, builder: Any, made: Any, args: Any) -> Any:  # noqa: ANN401, ARG001
        return builder.cttz(args[0], ir.Constant(_BIT, 0))

    return types.uint64(types.uint64), codegen


def _repeat(builder: Any, words: list[Any]) -> Any:  # noqa: ANN401
    """Return a line in which the words take turns."""
    line = ir.Constant(_LINE, ir.Undefined)
    for number in range(_LINE.count):
        place = ir.Constant(ir.IntType(32), number)
        line = builder.insert_element(line, words[number % len(words)], place)
    return line


look: Any = intrinsic(_look)
"""`look(table, at, mask, key, most)` for kernels."""

lowest: Any = intrinsic(_lowest)
"""`lowest(bits)` for kernels."""
