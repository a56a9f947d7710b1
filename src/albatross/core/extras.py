"""The optional parts of an install, and the command that adds one."""

import importlib.metadata
import platform
import re
import shlex

DISTRIBUTION = "albatross-bandits"
"""The name of the package in an index; it is imported as `albatross`."""

SERVICE_ONLY = ("httptools", "msgspec", "structlog")
"""Modules that only the service imports."""
POSTGRES_ONLY = ("fsspec", "psycopg")
"""Modules that only a service with its log in PostgreSQL imports."""


def install_command(extra: str) -> str:
    """A command that adds an extra to the current install.

    It names the packages of the extra, because an albatross installed from a folder or a wheel need not be in any index.

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
    """Whether the requirement belongs to the extra and this platform. Our markers name no platform but Windows."""
    named = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
    excluded = "platform_system != 'Windows'" in marker.replace('"', "'") and platform.system() == "Windows"
    return named is not None and named[1] == extra and not excluded


def explain_missing(error: ImportError) -> str | None:
    """A sentence about the missing part of the service; None if something else is missing."""
    missing = str(error.name or "").partition(".")[0]
    if missing not in SERVICE_ONLY + POSTGRES_ONLY:
        return None
    extra = "cluster" if missing in POSTGRES_ONLY else "serve"
    return f"this needs {missing}, which is not installed; accepted: {install_command(extra)}"
