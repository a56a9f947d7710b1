"""Policies from outside this package: from a file, from another package, or from sources sent by another process.

A module is identified by the digest of its sources. The same file is loaded once; an edited file is another module.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from albatross.core.errors import InvalidInput
from albatross.core.files import whole_file
from albatross.kernels.building.sources import SCRIPT, Sources, gather, is_ours, know, sources_of
from albatross.kernels.compiling import cache_root

GROUP = "albatross.policies"
"""The group of entry points by which other packages offer policies."""

_given: dict[str, str] = {}
"""The name by which a user referred to the file of a module."""

_names: dict[type, str] = {}

_by_digest: dict[tuple[str, str], type] = {}


def load_file(path: Path, given: str) -> ModuleType:
    """The module in a file. `given` is how a user referred to the file; it is the name in tables."""
    if path.suffix != ".py" or not path.is_file():
        raise InvalidInput(f"there is no file {path}; accepted: a .py file that exists, as thompson.py:Thompson")
    return _load(gather(path), given)


def load_module(name: str) -> ModuleType:
    """A module of an installed package."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            beside = Path(*name.split(".")).with_suffix(".py")
            hint = f" Did you mean the file {beside}?" if beside.is_file() else ""
            raise InvalidInput(f"there is no module {name!r}.{hint} Accepted: one of an installed package, or a file.py:Class") from error
        raise InvalidInput(f"module {name!r} cannot be imported: {_place(error)}") from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidInput(f"module {name!r} cannot be imported: {_place(error)}") from error


def entry_points() -> dict[str, list[importlib.metadata.EntryPoint]]:
    """The policies that installed packages offer, by name; if two packages use one name, both."""
    offered: dict[str, list[importlib.metadata.EntryPoint]] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry not in offered.setdefault(entry.name, []):
            offered[entry.name].append(entry)
    return offered


def is_registered(name: str) -> bool:
    """Whether a policy of ours has that name. Ours has priority."""
    return name.replace("-", "").isalnum() and importlib.util.find_spec(f"{GROUP}.{name.replace('-', '_')}") is not None


def name_of(owner: type) -> str:
    """The name of a class from outside: its entry point, or its file as given or its module, with the class name.

    Two files with a class of the same name have different names, and a class has one name however it was found.
    """
    if owner not in _names:
        _names[owner] = _offered_as(owner) or f"{_given.get(owner.__module__) or _module_name(owner)}:{owner.__qualname__}"
    return _names[owner]


def _module_name(owner: type) -> str:
    sources = sources_of(owner)
    return sources.file.name if owner.__module__ == SCRIPT and sources is not None else owner.__module__


def _offered_as(owner: type) -> str | None:
    """The entry point of a class, if no other package uses that name."""
    top = owner.__module__.partition(".")[0]
    for name, entries in entry_points().items():
        if is_registered(name) or len(entries) > 1 or entries[0].module.partition(".")[0] != top:
            continue
        try:
            if entries[0].load() is owner:
                return name
        except (Exception, SystemExit):  # reported when it is used
            continue
    return None


def digest_of(owner: type) -> str | None:
    """The digest of the sources of a class from outside; None for ours, and if there is no file."""
    sources = None if is_ours(owner) else sources_of(owner)
    if sources is None:
        return None
    _by_digest.setdefault((sources.digest, owner.__qualname__), owner)
    return sources.digest


def known_by(digest: str, name: str) -> type | None:
    """The class of that name and digest, if it is loaded."""
    return _by_digest.get((digest, name))


def reference_to(owner: type) -> str:
    """A reference by which another process on this machine finds a class from outside: its module, or the absolute path of its file."""
    sources = sources_of(owner)
    if sources is None or not all(word.isidentifier() for word in owner.__qualname__.split(".")):
        where = "in a function" if sources is not None else "at a prompt"
        raise InvalidInput(f"policy {name_of(owner)!r} was written {where}, where no other process finds it; accepted: one in a file")
    installed = owner.__module__ != SCRIPT and owner.__module__ not in _given
    return f"{owner.__module__ if installed else sources.file}:{owner.__qualname__}"


class Parcel(NamedTuple):
    """A class for another process, perhaps on another machine, with its sources."""

    reference: str
    name: str
    sources: Sources
    given: str | None
    owner: str


def pack(owner: type) -> Parcel:
    """Everything another process needs to load a class from outside."""
    reference = reference_to(owner)
    sources = sources_of(owner)
    assert sources is not None, "a class with a reference has sources"
    digest_of(owner)
    given = sources.file.name if owner.__module__ == SCRIPT else _given.get(owner.__module__)
    return Parcel(reference, name_of(owner), sources, given, owner.__qualname__)


def unpack(parcel: Parcel) -> Any:
    """The class that was sent: already loaded, or found here with the same sources, or loaded from the sent sources."""
    known = known_by(parcel.sources.digest, parcel.owner)
    if known is not None:
        return known
    module = _found_here(parcel)
    if module is None:
        module = _load(_unwrapped(parcel.sources), parcel.given or parcel.sources.name)
    owner: Any = module
    for word in parcel.owner.split("."):
        owner = getattr(owner, word)
    _names.setdefault(owner, parcel.name)
    if digest_of(owner) != parcel.sources.digest:
        raise InvalidInput(f"policy {parcel.name!r} was sent with sources {parcel.sources.digest} and is here {digest_of(owner)}")
    return owner


def _found_here(parcel: Parcel) -> ModuleType | None:
    if parcel.given is not None:
        file = parcel.sources.file
        here = gather(file) if file.is_file() else None
        return _load(here, parcel.given) if here is not None and here.digest == parcel.sources.digest else None
    try:
        found = importlib.util.find_spec(parcel.sources.name)
        if found is None or found.origin is None or gather(Path(found.origin), parcel.sources.name).digest != parcel.sources.digest:
            return None
        return importlib.import_module(parcel.sources.name)
    except (ImportError, OSError, ValueError):  # not installed here
        return None


def _unwrapped(sources: Sources) -> Sources:
    """The same sources, written to a folder on this machine."""
    root = cache_root().parent / "sources" / sources.digest
    for place, content in sources.files.items():
        path = root / place
        if root.resolve() not in path.resolve().parents:
            raise InvalidInput(f"sources {sources.digest} name the file {place}, which is not among them")
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as partial:
                partial.write_bytes(content)
    return sources._replace(root=root)


def _load(sources: Sources, given: str) -> ModuleType:
    single = not sources.packaged
    name = re.sub(r"\W", "_", f"{sources.name}_{sources.digest}") if single else sources.name
    if name in sys.modules:
        return _loaded_before(name, sources, given)
    if len(sources.files) > 1 and str(sources.root) not in sys.path:
        sys.path.append(str(sources.root))  # for its own modules; last, so that it hides no other module
    before = set(sys.modules)
    try:
        module = _executed(name, sources.file) if single else importlib.import_module(name)
        _check_own(sources, given)
    except InvalidInput:
        raise
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        own = sources.name.partition(".")[0]
        for added in set(sys.modules) - before:
            if added == name or (not single and added.partition(".")[0] == own):
                del sys.modules[added]
        raise InvalidInput(f"{given} cannot be imported: {_place(error)}") from error
    know(name, sources)
    _given.setdefault(name, given)
    return module


def _loaded_before(name: str, sources: Sources, given: str) -> ModuleType:
    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    if sources.packaged and (file is None or Path(file).resolve() != sources.file):
        raise InvalidInput(f"{given} is the module {name!r}, and another one of that name was loaded from {file}; accepted: another name")
    known = sources_of(_Owner(name))
    if known is not None and known.digest != sources.digest:
        raise InvalidInput(f"{given} has changed since this process loaded it; accepted: a new process")
    _given.setdefault(name, given)
    return module


class _Owner:
    """Stands for any object of a module."""

    def __init__(self, module: str) -> None:
        self.__module__ = module


def _executed(name: str, file: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None, "a .py file has a loader"
    assert specification.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _check_own(sources: Sources, given: str) -> None:
    """Refuse a file whose own modules are hidden by other modules of the same name."""
    for place, content in list(sources.files.items())[1:]:
        path = sources.root / place
        words = Path(place).with_suffix("").parts
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            continue
        if Path(file).resolve() != path.resolve():
            raise InvalidInput(
                f"{given} imports {name!r}, which another file of that name hides: {file}; accepted: another name, or a package"
            )
        if _seen.setdefault(path, content) != content:
            raise InvalidInput(f"{path}, which {given} imports, has changed since this process loaded it; accepted: a new process")


_seen: dict[Path, bytes] = {}
"""Modules beside single files, as they were when they were loaded."""


def _place(error: BaseException) -> str:
    """File, line and error."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    what = "it ends the process (SystemExit)" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    ours = f"{Path(__file__).parents[2]}{os.sep}"
    place = next((frame for frame in reversed(theirs) if not frame.filename.startswith(ours)), theirs[-1] if theirs else None)
    return what if place is None else f"{place.filename}, line {place.lineno}: {what}"
