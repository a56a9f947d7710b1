"""Outside names on one side, dense whole numbers on the other."""

from collections.abc import Iterable


class Vocabulary:
    """Maps outside ids to 0, 1, 2, … in the order in which they were first seen, and back.

    >>> people = Vocabulary(["ann", "bob"])
    >>> people.number("bob"), people.add("eve"), people.name(2), len(people)
    (1, 2, 'eve', 3)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """The number of a name, new or known."""
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def number(self, name: str) -> int:
        return self._numbers[name]

    def name(self, number: int) -> str:
        return self._names[number]

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def __len__(self) -> int:
        return len(self._names)
