"""Outside names on one side, dense whole numbers on the other."""

from collections.abc import Iterable


class Vocabulary:
    """Maps outside ids to 0, 1, 2, … in the order in which they were first seen, and back. Change it by its methods only.

    >>> people = Vocabulary(["ann", "bob"])
    >>> people.number("bob"), people.add("eve"), people.add("bob"), people.name(2), len(people)
    (1, 2, 1, 'eve', 3)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        """For loops that have no time for a call."""
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """The number of a name, new or known."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def rename(self, name: str, other: str) -> None:
        """Give the number of a name to another one, which has none."""
        number = self.numbers.pop(name)
        self.names[number], self.numbers[other] = other, number

    def number(self, name: str) -> int:
        return self.numbers[name]

    def name(self, number: int) -> str:
        return self.names[number]

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    def __len__(self) -> int:
        return len(self.names)
