"""The optional parts of an install, and the command that adds one."""

import importlib.metadata
import platform
import re
import shlex

DISTRIBUTION = "albatross-bandits"
"""What the package is called where packages are installed from; it is imported as `albatross`."""

SERVICE_ONLY = ("httptools", "msgspec", "structlog")
"""What only the service imports."""
POSTGRES_ONLY = ("psycopg",)
"""What only a service imports whose log is in PostgreSQL."""


def install_command(extra: str) -> str:
    """A command that adds an extra to the install it is printed in.

    It names what the extra needs, because no index has to know an albatross that was installed from a folder or a wheel.

    >>> install_command("xls")
    "pip install 'xlrd>=2'"
    """
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        lines = []
    needed = [requirement.strip() for requirement, _, marker in (line.partition(";") for line in lines) if _applies(marker, extra)]
    return f"pip install {shlex.join(needed or [f'{DISTRIBUTION}[{extra}]'])}"


def _applies(marker: str, extra: str) -> bool:
    """Whether the requirement belongs to the extra and to this platform; the markers we use name no other platform but Windows."""
    named = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
    excluded = "platform_system != 'Windows'" in marker.replace('"', "'") and platform.system() == "Windows"
    return named is not None and named[1] == extra and not excluded


def explain_missing(error: ImportError) -> str | None:
    """A sentence about the part of the service that is not installed; none if it is something else that is missing."""
    missing = str(error.name or "").partition(".")[0]
    if missing not in SERVICE_ONLY + POSTGRES_ONLY:
        return None
    extra = "cluster" if missing in POSTGRES_ONLY else "serve"
    return f"this needs {missing}, which is not installed; accepted: {install_command(extra)}"
