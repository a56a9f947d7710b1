"""Disks that do not synchronise: told at once, whichever file it is. The failure is that of the system call itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from albatross import Recommender

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* fsync and fdatasync fail for files whose name ends as FAILING says, once the file SWITCH exists. */
static int fails(int file) {
    char link[64], name[4096];
    const char *ending = getenv("FAILING");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0 || ending == NULL || access(getenv("SWITCH"), F_OK) != 0) return 0;
    name[length] = 0;
    return (size_t)length >= strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0;
}
int fsync(int file) {
    if (fails(file)) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
int fdatasync(int file) {
    if (fails(file)) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
"""

WRITER = """
import os, sys
from pathlib import Path
from albatross import Recommender
from albatross.service.api.errors import StorageFailed
from albatross.service.storage.sqlite import log
log.JOURNAL_BYTES = 100_000  # so that the main file is synchronised soon
shop = Recommender(sys.argv[1], scale=(1, 5), policy="item-mean")
for number in range(500):
    if number == 20:
        Path(os.environ["SWITCH"]).touch()
    try:
        shop.rate_item("ann", f"item{number}", 3, event_id=f"e{number}")
    except StorageFailed as error:
        print(number, error, flush=True)
        break
else:
    print("never", flush=True)
try:
    shop.rate_item("ann", "later", 3)
except StorageFailed:
    print("nothing more", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("failing", ["log.sqlite", "log.sqlite-wal", "mark"])
def test_a_failed_synchronisation_is_told(failing: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("there is no C compiler, or no /proc, to let a system call fail with")
    (tmp_path / "shim.c").write_text(SHIM)
    library = tmp_path / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "shim.c"), "-ldl"], check=True)
    switch = tmp_path / "switch"
    environment = {"LD_PRELOAD": str(library), "FAILING": failing, "SWITCH": str(switch)}
    run = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path / "shop")], capture_output=True, text=True, check=False, env=_with(environment)
    )
    first, *rest = run.stdout.splitlines()
    assert first.split()[0].isdigit(), run.stdout + run.stderr
    assert rest == ["nothing more"]
    kept = int(first.split()[0])
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version().ratings in (kept, kept + 1)  # the last one may have been kept without being acknowledged
        for number in range(kept):
            assert shop.rate_item("ann", f"item{number}", 3, event_id=f"e{number}").duplicate


def _with(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **more}
