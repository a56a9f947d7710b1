"""`key=value` words, and which policy they belong to."""

import math
import sys
from collections.abc import Iterable, Sequence

from albatross import policies
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy

SEPARATOR = "\0"
"""Parts a policy from its settings in one word; no argument can contain it."""


def fold_settings(arguments: Sequence[str]) -> list[str]:
    r"""Append each `--set` to the `--policy` before it, so that their order survives a parser that collects options by name.

    >>> fold_settings(["--policy", "alb", "--set", "rank=3", "--policy=random"])
    ['--policy', 'alb\x00rank=3', '--policy', 'random']
    """
    if arguments[:1] == ["check"]:  # it has one policy, and no option for it
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
            raise InvalidInput(f"--set {given} stands before any --policy; accepted: after the policy it belongs to")
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


def parse_scale(text: str) -> tuple[float, float]:
    """Lowest and highest rating.

    >>> parse_scale("1..5"), parse_scale("-10..10")
    ((1.0, 5.0), (-10.0, 10.0))
    """
    lowest, dots, highest = text.partition("..")
    try:
        low, high = float(lowest), float(highest)
    except ValueError:
        low = high = math.nan
    if not (dots and low < high and math.isfinite(high - low)):
        raise InvalidInput(f"--scale is {text!r}; accepted: lowest..highest, as 1..5")
    return low, high


def parse_events(text: str) -> dict[str, float]:
    """Names of events, and what they are worth.

    >>> parse_events("impression=0,click=1,purchase=5")
    {'impression': 0.0, 'click': 1.0, 'purchase': 5.0}
    """
    settings = parse_settings("--events", text.split(","))
    try:
        return {name: float(reward) for name, reward in settings.items()}
    except ValueError as error:
        raise InvalidInput(f"--events is {text!r}; accepted: names and numbers, as click=1,purchase=5") from error


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_time(flag: str, text: str) -> float:
    """A time in seconds.

    >>> parse_time("--retention", "90d")
    7776000.0
    """
    try:
        seconds = float(text[:-1]) * UNITS[text[-1:]]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidInput(f"{flag} is {text!r}; accepted: a time, as 30m or 90d (units: s, m, h, d)")
    return seconds


def parse_silence(text: str) -> tuple[float, float]:
    """Seconds to wait for an answer, and what silence counts for.

    >>> parse_silence("30m=0"), parse_silence("1.5h=-1")
    ((1800.0, 0.0), (5400.0, -1.0))
    """
    waiting, equals, reward = text.partition("=")
    try:
        seconds, worth = float(waiting[:-1]) * UNITS[waiting[-1:]], float(reward)
    except (KeyError, ValueError):
        seconds = worth = math.nan
    if not (equals and 0 < seconds < math.inf and math.isfinite(worth)):
        raise InvalidInput(f"--silence is {text!r}; accepted: a time and a reward, as 30m=0 (units: s, m, h, d)")
    return seconds, worth
