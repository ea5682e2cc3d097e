"""CRC-32 checksums of bytes while they are written, and of bytes that several ranks write, one behind the other."""

import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache

# A checksum, and the number of bytes that it is about.
Summed = tuple[int, int]

_POLYNOMIAL = 0xEDB88320  # of CRC-32, the lowest power in the highest bit
_ONE = 1 << 31
# From this number of bytes on, a checksum takes longer than the start of a thread.
_WORTH_A_THREAD = 1 << 22


class WrittenSum(ExitStack):
    """The checksum of consecutive pieces that are being written. Large pieces are summed meanwhile, in a thread.

    Attributes:
        checksum: of the pieces so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checksum = 0
        self._thread: ThreadPoolExecutor | None = None

    def add(self, content: memoryview, write: Callable[[], object]) -> None:
        """Add the next piece and write it."""
        if content.nbytes < _WORTH_A_THREAD:
            write()
            self.checksum = zlib.crc32(content, self.checksum)
        else:
            self._thread = self._thread or self.enter_context(ThreadPoolExecutor(1))
            summed = self._thread.submit(zlib.crc32, content, self.checksum)
            write()
            self.checksum = summed.result()


def combined(pieces: Iterable[Summed], checksum: int = 0) -> int:
    """The `zlib.crc32` checksum of consecutive pieces, continued from ``checksum``.

    A checksum is the remainder of a polynomial. To put n bytes behind it, multiply it by x⁸ⁿ. That is what
    crc32_combine of zlib does.
    """
    for of_piece, length in pieces:
        checksum = _product(_shift(length), checksum) ^ of_piece
    return checksum


@lru_cache(maxsize=64)
def _shift(length: int) -> int:
    """x⁸ⁿ for n bytes, modulo the polynomial."""
    result, square = _ONE, _ONE >> 8
    while length:
        if length & 1:
            result = _product(result, square)
        square = _product(square, square)
        length >>= 1
    return result


def _product(one: int, other: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    while one:
        if one & _ONE:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product
