"""The settings of a service: flags, the configuration file, Python, and what `doctor` says is in force."""

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from live import Live

from albatross import Recommender
from albatross.cli import main
from albatross.cli.service.serve import serve
from albatross.core.errors import InvalidInput
from albatross.service.settings.file import example, read_file
from albatross.service.settings.force import settle
from albatross.service.settings.table import BY_KEY, SETTINGS
from albatross.service.storage.folder import SETTINGS as FILE

pytestmark = pytest.mark.xdist_group("service-http")


def written(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder


def in_force(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str]]:
    """What `doctor` says of each setting."""
    code = main(["doctor", *arguments])
    lines = capsys.readouterr().out.splitlines()
    return code, dict(line.split(" = ", 1) for line in lines if line.partition(" = ")[0] in BY_KEY)


def test_the_example_has_every_flag_and_all_of_it_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--example-config"]) == 0
    text = capsys.readouterr().out
    assert text == example()
    assert tomllib.loads(text) == {}
    whole = "\n".join(line.removeprefix("#") if line.startswith("#") and line[1:2] != " " else line for line in text.splitlines())
    flags = {name for name in inspect.signature(serve).parameters if name not in ("folder", "root", "config", "example_config", "setting")}
    assert set(tomllib.loads(whole)) - {"set"} == flags == set(BY_KEY)
    read = read_file(written(tmp_path, whole) / FILE)
    assert set(read) == flags
    assert read["certificate"] == tmp_path / "chain.pem"  # relative to the file
    for setting in SETTINGS:
        assert setting.meaning.split()[0] in text
        if setting.default not in (None, ()) and setting.key != "policy":
            assert read[setting.key] == setting.default, f"the example of {setting.key} is not its default"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sclae = [1, 5]", "unknown key 'sclae'. Did you mean 'scale'?"),
        ("allow-host = ['a']", "Did you mean 'allow_host'?"),
        ("[server]\nport = 1", "unknown key 'server'"),
        ("port = '80'", "port is '80'; accepted: a whole number from 0 to 65535"),
        ("port = 65536", "port is 65536; accepted: a whole number from 0 to 65535"),
        ("port = true", "port is True; accepted: a whole number"),
        ("queue = 0", "queue is 0; accepted: a whole number, at least 1"),
        ("floor = 1.5", "floor is 1.5; accepted: a number from 0 to 1"),
        ("floor = nan", "floor is nan; accepted: a number from 0 to 1"),
        ("seed = -1", "seed is -1; accepted: a whole number, at least 0"),
        ("closed_catalogue = 1", "closed_catalogue is 1; accepted: true or false"),
        ("durability = 'none'", "durability is 'none'; accepted: commit, relaxed"),
        ("scale = [5, 1]", "scale is [5, 1]; accepted: lowest..highest"),
        ("scale = [1, 2, 3]", "scale is [1, 2, 3]; accepted: lowest..highest"),
        ("scale = 5", "scale is 5; accepted: lowest..highest"),
        ("events = {click = 'x'}", "events is {'click': 'x'}; accepted: names and numbers"),
        ("events = 'click=1,click=2'", "events is 'click=1,click=2'; accepted: names and numbers, each name once"),
        ("silence = '30=0'", "silence is '30=0'; accepted: a time and a reward"),
        ("retention = '90'", "retention is '90'; accepted: a time, as 30m or 90d"),
        ("silence = 30", "silence is 30; accepted: a time and a reward"),
        ("allow_origin = ['https://a', '*']", "allow_origin is '*'; accepted: scheme and host"),
        ("allow_host = 'a'", "allow_host is 'a'; accepted: a list, as [\"shop.example\"]"),
        ("allow_host = ['a/b']", "allow_host is 'a/b'; accepted: a name or an address alone"),
        ("allow_origin = 'https://a'", "allow_origin is 'https://a'; accepted: a list, as [\"https://shop.example\"]"),
        ("policy = 'albb'", "unknown policy 'albb'. Did you mean 'alb'?"),
        ("policy = 'alb'\nset = {rnak = 3}", "unknown parameter of alb 'rnak'. Did you mean 'rank'?"),
        ("policy = 'alb'\nset = {rank = 'x'}", "rank is 'x'; accepted: a whole number"),
        ("policy = 'alb'\nset = 3", "set is 3; accepted: a table"),
        ("set = {rank = 3}", "set is given without policy"),
        ("host = ''", "host is ''; accepted: text"),
        ("certificate = 3", "certificate is 3; accepted: the path of a file"),
        ("port = 1\nport = 2", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    folder = written(tmp_path / "shop", text)
    assert main(["serve", str(folder), "--port", "0"]) == 2
    complaint = " ".join(capsys.readouterr().err.split())
    assert str(folder / FILE) in complaint
    assert sentence in complaint
    with pytest.raises(InvalidInput, match=FILE):
        Recommender(folder)
    assert main(["doctor", str(folder)]) == 2
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_flags_win_over_the_file_and_the_file_over_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "shop", "scale = [1, 5]\nport = 9000\nallow_origin = ['https://a.example']\ndurability = 'relaxed'")
    elsewhere = written(tmp_path / "etc", "port = 9100")
    code, found = in_force(capsys, str(folder), "--durability", "commit", "--events", "buy=5")
    assert code == 0
    file = f"({folder / FILE})"
    assert found["scale"] == f"[1, 5] {file}"
    assert found["port"] == f"9000 {file}"
    assert found["allow_origin"] == f'["https://a.example"] {file}'
    assert (found["durability"], found["events"]) == ('"commit" (flag)', "{buy = 5} (flag)")
    assert (found["queue"], found["host"]) == ("4096 (default)", '"127.0.0.1" (default)')
    assert in_force(capsys, str(folder), "--config", str(elsewhere / FILE))[1]["port"] == f"9100 ({elsewhere / FILE})"
    assert main(["doctor", str(folder), "--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml cannot be read" in capsys.readouterr().out


def test_what_the_folder_began_with_counts_and_a_file_that_contradicts_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "shop", "policy = 'item-mean'\nset = {}\nevents = {click = 1, buy = 5}\nclosed_catalogue = true")
    with Recommender(folder, floor=0.5) as shop:
        version = shop.version()
        assert (version.policy, version.scale, version.events) == ("item-mean", (1.0, 5.0), {"click": 1.0, "buy": 5.0})
        with pytest.raises(InvalidInput, match="no items yet"):
            shop.recommend("ann", candidates=["tea"])
    code, found = in_force(capsys, str(folder))
    assert code == 0
    assert (found["scale"], found["floor"], found["closed_catalogue"]) == ("[1, 5] (genesis)", "0.5 (genesis)", "true (genesis)")
    with Recommender(folder) as shop:
        shop.set_rewards({"click": 2, "buy": 5})
    with Recommender(folder) as shop:  # the file still has the first rewards
        assert shop.version().events == {"click": 2.0, "buy": 5.0}
    assert main(["doctor", str(folder)]) == 0
    assert "events click = 2, buy = 5 (set since the folder was made" in capsys.readouterr().out
    written(folder, "closed_catalogue = true")
    assert in_force(capsys, str(folder))[1]["events"] == "{click = 2, buy = 5} (log)"
    written(folder, "scale = [1, 10]")
    for arguments in (["serve", str(folder), "--port", "0"], ["doctor", str(folder)]):
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert "scale is (1.0, 10.0); accepted: that of" in " ".join((said.out + said.err).split())
    with pytest.raises(InvalidInput, match="scale is"):
        Recommender(folder)
    with Recommender(folder, scale=(1, 5)) as shop:  # what is given wins over the file
        assert shop.version().seq == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed = 3", "seed is 3; accepted: that of"),
        ("closed_catalogue = true", "closed_catalogue is True; accepted: that of"),
        ("events = {click = 2}", "events is click=2; accepted: those of"),
        ("silence = '30m=9'", "silence counts for 9; accepted: a number from 1 to 5"),
    ],
)
def test_what_contradicts_a_folder_names_the_file_or_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    folder = tmp_path / "shop"
    Recommender(folder, (1, 5), policy="item-mean").close()
    written(folder, text)
    with pytest.raises(InvalidInput, match=re.escape(f"{folder / FILE}: {sentence}")):
        Recommender(folder)
    assert main(["doctor", str(folder)]) == 2
    assert f"{folder / FILE}: {sentence}" in " ".join(capsys.readouterr().out.split())
    (folder / FILE).unlink()
    with pytest.raises(InvalidInput, match=r"^seed is 4; accepted"):
        Recommender(folder, seed=4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("scale = [1, 5]\nsilence = '30m=9'", "silence counts for 9; accepted: a number from 1 to 5"),
        ("scale = [1, 5]\nevents = {click = 9}", "the reward of 'click': "),
    ],
)
def test_what_a_new_folder_cannot_begin_with_names_the_file(tmp_path: Path, text: str, sentence: str) -> None:
    folder = written(tmp_path / "shop", text)
    with pytest.raises(InvalidInput, match=re.escape(f"{folder / FILE}: {sentence}")):
        Recommender(folder)


def test_times_are_told_as_they_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "shop", "scale = [1, 5]\nsilence = '30m=1'\nretention = '90d'")
    _, found = in_force(capsys, str(folder))
    assert [found[key].partition(" (")[0] for key in ("silence", "retention")] == ['"30m=1"', '"90d"']


def test_a_service_is_started_by_its_file_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "shop", 'scale = "0..10"\npolicy = "item-mean"\nqueue = 7\nallow_origin = ["https://shop.example"]\n')
    with Live(folder, scale=None) as live:
        assert live.get("/v1/version").json["scale"] == [0.0, 10.0]
        reply = live.get("/healthz", {"Origin": "https://shop.example"})
        assert reply.headers["access-control-allow-origin"] == "https://shop.example"


def test_an_import_begins_a_folder_as_its_file_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "shop", "scale = [0, 10]\npolicy = 'item-mean'")
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,tea,7\n")
    assert main(["import", str(folder), str(tmp_path / "ratings.csv")]) == 0
    assert in_force(capsys, str(folder))[1]["policy"] == '"item-mean" (genesis)'


def test_a_database_has_no_file_unless_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(tmp_path, "port = 9000"))
    given: dict[str, Any] = {}
    assert settle(None, given)["port"].value == 8000
    assert settle(None, given, Path(FILE))["port"].value == 9000
