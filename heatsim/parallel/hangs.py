"""Detect exchanges between devices that hang: all ranks have come to one, but it does not end on some of them."""

from collections.abc import Sequence

from heatsim.parallel.signs import Sign


class Hangs:
    """Counts how often the same exchange was found unfinished although all ranks have started it."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # of each followed progress: the exchange, and how often

    def look(self, signs: Sequence[Sign]) -> tuple[int, int]:
        """How many times in sequence an exchange was found unfinished, and a rank on which it hangs.

        Args:
            signs: the latest one of each rank.
        """
        most = 0, 0
        for number in range(min(len(sign.progress) for sign in signs)):
            of_ranks = [sign.progress[number] for sign in signs]
            exchange = min(each.reached for each in of_ranks)
            rank = next((rank for rank, each in enumerate(of_ranks) if each.done < exchange), None)
            before, count = self._seen.get(number, (exchange, 0))
            count = count + 1 if rank is not None and before == exchange else 0
            self._seen[number] = exchange, count
            if rank is not None:
                most = max(most, (count, rank))
        return most
