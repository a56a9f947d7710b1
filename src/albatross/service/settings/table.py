"""The table of settings. It gives the flags of the command line, the keys of the configuration file and lines of `albatross doctor`."""

from typing import Any, NamedTuple, get_args

from albatross.service.api.rules import By
from albatross.service.engine.learned.options import FLOOR, QUEUE
from albatross.service.settings.kinds import EVENTS, HOSTS, ORIGINS, PATH, SCALE, SILENCE, SWITCH, TEXT, TIME, Kind, choice, number, whole


class Setting(NamedTuple):
    key: str
    """The key in the file; with hyphens, the flag."""
    kind: Kind
    meaning: str
    example: Any
    """Example for the file, as a TOML value."""
    default: Any = None
    """The value if none is given; None: not set."""
    genesis: str | None = None
    """The attribute of the first event that fixes the setting, once there is a log."""
    process: bool = False
    """Whether it belongs to the whole process when that serves several folders."""

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
        "If the source of your own policy has changed: rebuild the model from the whole log with the new source.",
        False,
        False,
    ),
    Setting("seed", whole(0), "Seed of a new folder; 0 if not given.", 0, 0, genesis="seed"),
    Setting(
        "floor",
        number(0, 1),
        f"Share of places filled at random, so that propensities are valid; {FLOOR} for a new folder.",
        FLOOR,
        FLOOR,
        genesis="floor",
    ),
    Setting("closed_catalogue", SWITCH, "Items appear only by upsert, not by being named.", False, False, genesis="closed"),
    Setting(
        "events",
        EVENTS,
        "Named events and their rewards, as impression=0,click=1,cart=3,purchase=5. Then feedback may have `event` instead of `rating`; "
        "the last event for an item of a decision counts. Without --scale, the scale is that of the rewards.",
        {"click": 1, "cart": 3, "purchase": 5},
        genesis="events",
    ),
    Setting(
        "silence",
        SILENCE,
        "Reward of an item that gets no answer, and after which time, as 30m=0. Units: s, m, h, d. A later answer replaces it.",
        "30m=1",
    ),
    Setting(
        "retention",
        TIME,
        "How long a decision without an answer stays in the log, as 90d; for ever if not given. A later answer is refused.",
        "90d",
    ),
    Setting(
        "strangers",
        choice(*get_args(By)),
        "What users without ratings are shown: what the policy predicts for everybody, popular items, or new ones. policy if not given.",
        "policy",
        "policy",
    ),
    Setting(
        "durability",
        choice("commit", "relaxed"),
        "commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails. commit if not given.",
        "commit",
        "commit",
    ),
    Setting("queue", whole(1), f"Limit of waiting requests; further ones are refused with 429. {QUEUE} if not given.", QUEUE, QUEUE),
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
        "With a PostgreSQL address: the folder for snapshots, for a quick start. A folder in the user's cache if not given.",
        "snapshots",
    ),
    Setting(
        "host",
        TEXT,
        "Address to listen on. 127.0.0.1, only this machine, if not given. Any other needs a key: albatross keys create.",
        "127.0.0.1",
        "127.0.0.1",
        process=True,
    ),
    Setting("port", whole(0, 65535), "Port to listen on; 0 for any free port; 8000 if not given.", 8000, 8000, process=True),
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
        "Format of the log on standard error: text, or json with one object per line. text if not given.",
        "text",
        "text",
        process=True,
    ),
)

BY_KEY = {setting.key: setting for setting in SETTINGS}

SET = "set"
"""The key of a table with the parameters of the policy. On the command line this is --set key=value after --policy."""
