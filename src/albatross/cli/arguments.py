"""`key=value` words, and the policy that each belongs to."""

import sys
from collections.abc import Iterable, Sequence

from albatross import policies
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy

SEPARATOR = "\0"
"""Separates a policy from its settings in one word. No argument can contain it."""


def fold_settings(arguments: Sequence[str]) -> list[str]:
    r"""Append each `--set` to the `--policy` before it, so that their order survives a parser that collects options by name.

    >>> fold_settings(["--policy", "alb", "--set", "rank=3", "--policy=random"])
    ['--policy', 'alb\x00rank=3', '--policy', 'random']
    """
    if arguments[:1] == ["check"]:  # it has one policy, which is not an option
        return list(arguments)
    folded: list[str] = []
    policy: int | None = None
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option not in ("--policy", "--set"):
            folded.append(word)
            continue
        given = value if equals else next(words, None)
        if given is None or given.startswith("--"):
            raise InvalidInput(f"{option} is given without a value; accepted: {'a name' if option == '--policy' else 'key=value'}")
        if option == "--policy":
            folded += ["--policy", given]
            policy = len(folded) - 1
        elif policy is None:
            raise InvalidInput(f"--set {given} comes before any --policy; accepted: after the policy that it belongs to")
        else:
            folded[policy] += SEPARATOR + given
    return folded


def parse_policy(word: str) -> Policy:
    """The policy of a folded word."""
    name, *settings = word.split(SEPARATOR)
    for sentence in policies.hidden(name):
        print(f"albatross: {sentence}", file=sys.stderr)
    return policies.find(name).from_text(parse_settings("--set", settings))


def parse_settings(option: str, words: Iterable[str]) -> dict[str, str]:
    """`key=value` words by key.

    >>> parse_settings("--world", ["rank=3", "noise=0.1"])
    {'rank': '3', 'noise': '0.1'}
    """
    settings: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise InvalidInput(f"{option} is {word!r}; accepted: key=value")
        if key in settings:
            raise InvalidInput(f"{option} gives {key} more than once ({settings[key]} and {value}); accepted: once")
        settings[key] = value
    return settings
