"""SipHash-2-4 of any bytes, as the paper of Aumasson and Bernstein writes it: the oracle."""

MASK = (1 << 64) - 1


def siphash(key: bytes, message: bytes) -> int:
    """Return SipHash-2-4 of a message under a key of 16 bytes."""
    low, high = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v0, v1 = low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D
    v2, v3 = low ^ 0x6C7967656E657261, high ^ 0x7465646279746573
    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v3 ^= word
        v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
        v0 ^= word
    v0, v1, v2, v3 = _rounds(v0, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


def _rounds(v0: int, v1: int, v2: int, v3: int, count: int) -> tuple[int, int, int, int]:
    for _ in range(count):
        v0 = v0 + v1 & MASK
        v1 = _left(v1, 13) ^ v0
        v0 = _left(v0, 32)
        v2 = v2 + v3 & MASK
        v3 = _left(v3, 16) ^ v2
        v0 = v0 + v3 & MASK
        v3 = _left(v3, 21) ^ v0
        v2 = v2 + v1 & MASK
        v1 = _left(v1, 17) ^ v2
        v2 = _left(v2, 32)
    return v0, v1, v2, v3


def _left(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & MASK
