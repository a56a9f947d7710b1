"""The table of settings: flags of the command line, keys of the configuration file, lines of `albatross doctor`."""

from typing import Any, NamedTuple

from albatross.service.engine.learned.options import FLOOR, QUEUE
from albatross.service.settings.kinds import EVENTS, HOSTS, ORIGINS, PATH, SCALE, SILENCE, SWITCH, TEXT, TIME, Kind, choice, number, whole


class Setting(NamedTuple):
    key: str
    """In the file; with hyphens, the flag."""
    kind: Kind
    meaning: str
    example: Any
    """For the file, as TOML has it."""
    default: Any = None
    """What is in force where nobody says anything; none: nothing."""
    genesis: str | None = None
    """The attribute of the first event that fixes it, once there is one."""
    process: bool = False
    """Whether it is of the whole process, where that serves several folders."""

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "scale",
        SCALE,
        "Lowest and highest rating, as 1..5. Needed for a new folder, unless --events say it.",
        [1, 5],
        genesis="scale",
    ),
    Setting(
        "policy",
        TEXT,
        "Name of a policy (see: albatross list), file.py:Class or module:Class; for a new folder, mean-field if not given.",
        "mean-field",
        "mean-field",
        genesis="policy",
    ),
    Setting(
        "accept_changed_policy",
        SWITCH,
        "Where the source of a policy from outside has changed: learn from the whole log anew, with the new source.",
        False,
        False,
    ),
    Setting("seed", whole(0), "Seed of a new folder; 0 if not given.", 0, 0, genesis="seed"),
    Setting(
        "floor",
        number(0, 1),
        f"Share of decisions left to chance, so that propensities are true; {FLOOR} for a new folder.",
        FLOOR,
        FLOOR,
        genesis="floor",
    ),
    Setting("closed_catalogue", SWITCH, "Items appear only by upsert, not by being named.", False, False, genesis="closed"),
    Setting(
        "events",
        EVENTS,
        "Names of events, and what they are worth, as impression=0,click=1,cart=3,purchase=5. Then `event` may stand for `rating` in "
        "feedback; of the same item of a decision the last one counts. Without --scale, the scale is that of the events.",
        {"click": 1, "cart": 3, "purchase": 5},
        genesis="events",
    ),
    Setting(
        "silence",
        SILENCE,
        "What it counts for that nobody answers, and after how long, as 30m=0. Units: s, m, h, d. What comes later takes its place.",
        "30m=1",
    ),
    Setting(
        "retention",
        TIME,
        "How long a decision that nobody answers stays in the log, as 90d; for ever if not given. An answer that comes later is refused.",
        "90d",
    ),
    Setting(
        "durability",
        choice("commit", "relaxed"),
        "commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails. commit if not given.",
        "commit",
        "commit",
    ),
    Setting("queue", whole(1), f"Requests that may wait, at most; beyond, they are refused with 429. {QUEUE} if not given.", QUEUE, QUEUE),
    Setting(
        "allow_origin",
        ORIGINS,
        "A further origin whose pages may call the service, as https://shop.example; may be given several times.",
        ["https://shop.example"],
        (),
    ),
    Setting(
        "snapshots",
        PATH,
        "With an address of PostgreSQL: the folder for snapshots, which make a start quick. If not given, one in the user's cache.",
        "snapshots",
    ),
    Setting(
        "host",
        TEXT,
        "Address to listen on. Anything but this machine, which is 127.0.0.1 and the default, needs a key: albatross keys create.",
        "127.0.0.1",
        "127.0.0.1",
        process=True,
    ),
    Setting("port", whole(0, 65535), "Port to listen on; 0 for any that is free; 8000 if not given.", 8000, 8000, process=True),
    Setting("certificate", PATH, "TLS: the certificate chain, a PEM file.", "chain.pem", process=True),
    Setting("private_key", PATH, "TLS: its private key, a PEM file.", "key.pem", process=True),
    Setting(
        "allow_host",
        HOSTS,
        "A further name under which the service may be called (the Host header), as shop.example; may be given several times. Needs a key.",
        ["shop.example"],
        (),
        process=True,
    ),
    Setting(
        "log",
        choice("text", "json"),
        "How to log, to standard error: text, or json, one object a line. text if not given.",
        "text",
        "text",
        process=True,
    ),
)

BY_KEY = {setting.key: setting for setting in SETTINGS}

SET = "set"
"""The key of a table with the parameters of the policy, which on the command line is --set key=value behind --policy."""
