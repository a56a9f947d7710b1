"""The source files of a policy, and a digest of them, which identifies the policy wherever it is stored.

A policy of this package is one file. A policy from outside may be a file, a file with others beside it, or a module of a package. Then
all of its own modules that it imports, directly or not, count. Code of other packages does not.
"""

import ast
import hashlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

OURS = "albatross"
SCRIPT = "__main__"


class Sources(NamedTuple):
    """The code of one module as it was when it was loaded."""

    name: str
    """The name under which its own files import it."""
    root: Path
    """The folder that contains its files."""
    files: dict[str, bytes]
    """Content by path below the root; the module itself first."""
    digest: str

    @property
    def file(self) -> Path:
        return self.root / next(iter(self.files))

    @property
    def packaged(self) -> bool:
        """Whether it is a module of a package."""
        return "." in self.name or self.file.name == "__init__.py"


def is_ours(owner: Any) -> bool:
    """Whether a class or function is part of this package."""
    return str(owner.__module__).partition(".")[0] == OURS


def sources_of(owner: Any) -> Sources | None:
    """The code behind a class or function; None if there is no file, for example for code typed at a prompt."""
    name = owner.__module__
    if name not in _loaded:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None or not Path(file).is_file():
            return None
        _loaded[name] = gather(Path(file), None if name == SCRIPT else name)
    return _loaded[name]


_loaded: dict[str, Sources] = {}


_implementers: dict[type, list[Any]] = {}


def implemented_by(state_type: type, function: Any) -> None:
    """Record that a function is part of the code behind a type of state."""
    _implementers.setdefault(state_type, []).append(function)


def implementers(state_type: type | None) -> list[Any]:
    """The functions that implement operations for a type of state."""
    return [] if state_type is None else _implementers.get(state_type, [])


def know(module: str, sources: Sources) -> None:
    """Record the sources from which a module was loaded, because its files may change later."""
    _loaded[module] = sources


def gather(file: Path, name: str | None = None) -> Sources:
    """The code of the module in a file: its own, and that of the modules it imports from its own package or folder.

    `name` is the name it is imported by. If it is not given, the enclosing packages determine it.
    """
    file = file.resolve()
    words = file.with_suffix("").parts if file.name != "__init__.py" else file.parent.parts
    if name is None or tuple(name.split(".")) != words[-len(name.split(".")) :]:
        length = 1
        while file.parents[length - (file.name != "__init__.py")].joinpath("__init__.py").is_file():
            length += 1
        name = ".".join(words[-length:])
    root = Path(*words[: -len(name.split("."))])
    files: dict[str, bytes] = {}
    _collect(name, root, file, files)
    digest = hashlib.blake2b(digest_size=12)
    for path, content in sorted(files.items()):
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return Sources(name, root, files, digest.hexdigest())


def _collect(name: str, root: Path, file: Path, files: dict[str, bytes]) -> None:
    """Add the files of a module and of its own modules that it imports."""
    top, single = name.partition(".")[0], "." not in name and file.name != "__init__.py"
    strangers = single and root.name in ("site-packages", "dist-packages")  # files beside it there belong to other packages
    alone = strangers or top == OURS  # for our own code, everything that compiled code may share is counted anyway
    waiting = [(name, file)]
    while waiting:
        module, path = waiting.pop()
        place = path.relative_to(root).as_posix()
        if place in files:
            continue
        files[place] = path.read_bytes()
        if alone:
            return
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for imported in [module, *_imports(files[place], package)]:
            first = imported.partition(".")[0]
            if (single or first == top) and first != OURS and first not in sys.stdlib_module_names:
                waiting.extend(_with_parents(imported, root))


def _imports(source: bytes, package: str) -> Iterator[str]:
    """Full names of possible modules among the imports of a file."""
    try:
        tree = _parsed(source)
    except (SyntaxError, ValueError):  # reported when it is loaded
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*(word for word in above if word), *([node.module] if node.module else [])])
            if base:
                yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


_parsing = threading.Lock()


def _parsed(source: bytes) -> ast.Module:
    """One at a time: Python 3.11 counts the depth of all threads together, and gives up if two of them parse at once."""
    with _parsing:
        return ast.parse(source)


def syntax_of(source: bytes) -> bytes:
    """What a file says, without comments, layout and docstrings; the text itself if it cannot be read."""
    try:
        tree = _parsed(source)
    except (SyntaxError, ValueError):
        return source
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            # A text that stands by itself says nothing: a docstring, or the description of what is above it.
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def _with_parents(name: str, root: Path) -> Iterator[tuple[str, Path]]:
    """A module and its packages, as far as they are files below the root."""
    words = name.split(".")
    for length in range(1, len(words) + 1):
        place = root.joinpath(*words[:length])
        for path in (place / "__init__.py", place.with_name(place.name + ".py")):
            if path.is_file():
                yield ".".join(words[:length]), path
                break
