"""Power failures: what a process wrote and synchronised is recorded, call by call, and any state that a failure could leave is made.

The rules are the strictest: a file keeps what it had at its last synchronisation, any sectors of what was written since, and any of its
lengths since. A name in the folder is what it was when the folder was last synchronised, or what it became.
"""

import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SECTOR = 512

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Append to the file TRACE what is done to the files of the folder RECORDED. */
#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

struct record { uint32_t kind, name, length; uint64_t at; } __attribute__((packed));

static void record(int kind, const char *path, uint64_t at, const void *content, size_t length) {
    static int trace = -1;
    const char *folder = getenv("RECORDED");
    if (folder == NULL || strncmp(path, folder, strlen(folder)) != 0) return;
    if (trace < 0) trace = syscall(SYS_openat, AT_FDCWD, getenv("TRACE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct record start = {kind, strlen(path), length, at};
    struct iovec parts[3] = {{&start, sizeof start}, {(void *)path, strlen(path)}, {(void *)content, length}};
    if (syscall(SYS_writev, trace, parts, 3) != (long)(sizeof start + strlen(path) + length)) abort();
}
static const char *path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}
ssize_t pwrite64(int file, const void *content, size_t length, off64_t at) {
    char path[PATH_MAX];
    ssize_t done = REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)(file, content, length, at);
    if (done > 0) record('W', path_of(file, path), at, content, done);
    return done;
}
ssize_t pwrite(int file, const void *content, size_t length, off_t at) { return pwrite64(file, content, length, at); }
ssize_t write(int file, const void *content, size_t length) {
    char path[PATH_MAX];
    ssize_t done = REAL(ssize_t, write, int, const void *, size_t)(file, content, length);
    if (done > 0) record('W', path_of(file, path), lseek(file, 0, SEEK_CUR) - done, content, done);
    return done;
}
int ftruncate64(int file, off64_t length) {
    char path[PATH_MAX];
    int failed = REAL(int, ftruncate64, int, off64_t)(file, length);
    if (!failed) record('T', path_of(file, path), length, "", 0);
    return failed;
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }
int fsync(int file) {
    char path[PATH_MAX];
    record('S', path_of(file, path), 0, "", 0);
    return 0;
}
int fdatasync(int file) { return fsync(file); }
int unlink(const char *path) {
    int failed = REAL(int, unlink, const char *)(path);
    if (!failed) record('U', path, 0, "", 0);
    return failed;
}
static int opened(const char *path, int flags, int mode) {
    int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
    int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (file >= 0 && is_new) record('C', path, 0, "", 0);
    return file;
}
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); return opened(path, flags, mode); }
OPEN(open)
OPEN(open64)
"""


class Call(NamedTuple):
    """W: written, T: truncated, S: synchronised, C: created, U: removed."""

    kind: str
    name: str
    """Of the file, in its folder. Empty: the folder itself."""
    at: int
    content: bytes


class File:
    """A file: what is on disk, and what has been done to it since."""

    def __init__(self, content: bytes = b"") -> None:
        self.kept, self.now = bytearray(content), bytearray(content)
        self.since: list[Call] = []

    def do(self, call: Call) -> None:
        apply(self.now, call)
        self.since.append(call)

    def synchronise(self) -> None:
        for call in self.since:
            apply(self.kept, call)
        self.since = []

    def after_failure(self, choice: random.Random) -> bytes:
        """What may be on disk: all, nothing, the first part or any sectors of what was not synchronised."""
        way = choice.choice(("all", "nothing", "first", "sectors"))
        content = bytearray(self.kept)
        until = {"all": len(self.since), "nothing": 0}.get(way, choice.randint(0, len(self.since)))
        for call in self.since[: len(self.since) if way == "sectors" else until]:
            for part in sectors(call):
                if way != "sectors" or choice.random() < 0.6:
                    apply(content, part)
        if way == "first" and until < len(self.since):
            parts = sectors(self.since[until])
            for part in parts[: choice.randint(0, len(parts))]:
                apply(content, part)
        return bytes(content)


def apply(content: bytearray, call: Call) -> None:
    if call.kind == "T":
        del content[call.at :]
    content.extend(bytes(max(0, call.at - len(content))))
    content[call.at : call.at + len(call.content)] = call.content


def sectors(call: Call) -> list[Call]:
    """The parts of a write that cannot be torn."""
    if call.kind != "W":
        return [call]
    edges = [call.at, *range((call.at // SECTOR + 1) * SECTOR, call.at + len(call.content), SECTOR), call.at + len(call.content)]
    return [call._replace(at=start, content=call.content[start - call.at : end - call.at]) for start, end in itertools.pairwise(edges)]


class Disk:
    """The files of a folder."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.now = {name: File(content) for name, content in files.items()}
        self.kept = dict(self.now)

    def do(self, call: Call) -> None:
        if call.kind == "C":
            self.now[call.name] = File()
        elif call.kind == "U":
            self.now.pop(call.name, None)
        elif call.kind == "S" and not call.name:
            self.kept = dict(self.now)
        elif call.name in self.now:
            file = self.now[call.name]
            if call.kind == "S":
                file.synchronise()
            else:
                file.do(call)

    def after_failure(self, choice: random.Random) -> dict[str, bytes]:
        left = {}
        for name in sorted({*self.now, *self.kept}):
            file = choice.choice((self.now, self.kept)).get(name)
            if file is not None:
                left[name] = file.after_failure(choice)
        return left


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def make(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def shim(place: Path) -> Path:
    """The library that records, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler, or no /proc, to record system calls with")
    source, library = place / "shim.c", place / "shim.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def record(library: Path, program: str, folder: Path, *arguments: str) -> list[Call]:
    """Run a program. Returns what it did to the files of a folder, in order."""
    trace = folder.with_name(f"{folder.name}.trace")
    trace.unlink(missing_ok=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "RECORDED": str(folder), "TRACE": str(trace)}
    subprocess.run([sys.executable, "-c", program, str(folder), *arguments], check=True, env=environment)
    return list(_calls(trace.read_bytes(), str(folder)))


def _calls(trace: bytes, folder: str) -> Iterator[Call]:
    start, position = struct.Struct("<IIIQ"), 0
    while position < len(trace):
        kind, name, length, at = start.unpack_from(trace, position)
        position += start.size
        path, content = trace[position : position + name].decode(), trace[position + name : position + name + length]
        position += name + length
        yield Call(chr(kind), path[len(folder) :].lstrip("/"), at, content)
