"""Maps outside names to dense numbers."""

from collections.abc import Iterable


class Vocabulary:
    """Maps outside ids to 0, 1, 2, … in the order of their first use, and back. Change it only through its methods.

    >>> people = Vocabulary(["ann", "bob"])
    >>> people.number("bob"), people.add("eve"), people.add("bob"), people.name(2), len(people)
    (1, 2, 1, 'eve', 3)
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        """Public for loops in which a method call is too slow."""
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """The number of a name, new or known."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def rename(self, name: str, other: str) -> None:
        """Give the number of a name to another name, which must have none."""
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
