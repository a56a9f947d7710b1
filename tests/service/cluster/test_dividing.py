"""The log of a folder, moved into several shards."""

from pathlib import Path

import pytest
from places import Place
from town import Town

from albatross import Recommender
from albatross.cli import main
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.pts import PTS
from albatross.service.api.errors import UnknownDecision
from albatross.service.api.requests import AskVersion, Feedback, ForgetUser, JoinUsers, ListItems, ListUsers, Recommend, Verify, ViewUser
from albatross.service.api.rules import Where
from albatross.service.engine.learned.options import Options, new_genesis
from albatross.service.storage.events import encode
from albatross.service.storage.home import home_of
from albatross.service.storage.placing import shard_of
from albatross.service.storage.postgres.sharing import check_copied
from albatross.service.storage.store import Row

USERS = [f"u{number}" for number in range(10)]


def test_users_of_a_folder_are_divided_and_everything_is_there(
    databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, address = tmp_path / "folder", databases.address("shop")
    with Recommender(folder, policy=ItemMean(), scale=(1, 5), events={"click": 1, "purchase": 5}) as shop:
        shop.upsert_item("tea", attributes={"kind": "drink"})
        decisions = []
        for number, user in enumerate(USERS * 3):
            shop.ask(Feedback(f"e{number}", 1 + number % 5, user=user, item=f"i{number % 7}"))
            decision = shop.recommend(user, request_id=f"r{number}")
            decisions.append(decision)
            if number % 2:
                shop.ask(Feedback(f"c{number}", event="click", decision_id=decision.decision_id))
                shop.ask(Feedback(f"p{number}", event="purchase", decision_id=decision.decision_id))  # takes its place
        shop.ask(ForgetUser(USERS[3]))
        shop.retire_item("i6")
    with Recommender(folder, retention=1e-6) as shop:  # drops what nobody has answered
        while shop.engine._behind or not shop.engine._model.expired:
            shop.version()
        items = {one.item: (one.ratings, one.shown, one.retired) for one in shop.ask(ListItems()).items}
        users = {user: shop.ask(ViewUser(user)).ratings for user in USERS if user != USERS[3]}
        ratings, made = shop.version().ratings, shop.version().decisions
    assert main(["cluster", "move", str(folder), address, "--shards", "3"]) == 0
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path / "snapshots"), "--decisions"]) == 0
    assert len({check_copied(address, shard) for shard in range(3)}) == 1
    with Town(address, tmp_path / "snapshots", shards=3) as town:
        town.settle()
        assert {one.item: (one.ratings, one.shown, one.retired) for one in town.ask(ListItems()).items} == items
        assert {entry.user for entry in town.ask(ListUsers()).users} == set(users)
        assert {user: town.ask(ViewUser(user)).ratings for user in users} == users
        for shard, engine in enumerate(town.engines):
            assert set(engine._model.users.names) == {user for user in users if shard_of(user, 3) == shard}
            assert engine._model.rewards == {"click": 1, "purchase": 5}
        version = town.ask(AskVersion())
        assert (version.ratings, version.decisions) == (ratings, made)
        again = town.ask(Feedback("e0", 1, user=USERS[0], item="i0"))
        assert again.duplicate
        for user in (USERS[3], "anybody"):  # what was forgotten does not come back, whoever sends it
            assert town.ask(Feedback("e3", 4, user=user, item="i3")).duplicate
        for decision in decisions[:3]:
            with pytest.raises(UnknownDecision):
                town.ask(Feedback(f"late {decision.decision_id}", 3, decision_id=decision.decision_id, user=decision.user))
        assert {town.ask(Recommend(user, where=Where(attribute="kind", is_="drink"))).item for user in users} == {"tea"}
        fresh = town.ask(Recommend(USERS[0]))
        assert town.ask(Feedback("new", 3, decision_id=fresh.decision_id)).applied
        town.ask(ForgetUser(USERS[1]))
        town.settle()
        assert town.ask(Verify()).passed


def test_what_cannot_be_divided_is_refused(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = databases.address("shop")
    home = home_of(tmp_path / "pts")
    home.claim()
    home.begin([Row(encode(new_genesis(Options(policy=PTS(), scale=(1, 5)))))])  # nothing has to be compiled
    home.release()
    with Recommender(tmp_path / "one", policy=ItemMean(), scale=(1, 5)) as shop:
        shop.ask(Feedback("e", 3, user="ann", item="tea"))
    for folder, shards, sentence in (
        ("pts", 2, "policy 'pts' runs on one shard"),
        ("one", 0, "accepted: 1 to 256"),
        ("nothing", 2, "is no folder of the service"),
    ):
        assert main(["cluster", "move", str(tmp_path / folder), address, "--shards", str(shards)]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["cluster", "move", str(tmp_path / "one"), address, "--shards", "1"]) == 0
    assert main(["cluster", "move", str(tmp_path / "one"), address, "--shards", "2"]) == 2


def test_joined_visitors_live_with_their_users(databases: Place, tmp_path: Path) -> None:
    """A visitor was joined with a user of another shard, who was joined with one of a third."""
    folder, address = tmp_path / "folder", databases.address("shop")
    first, second, third = (next(user for number in range(50) if shard_of(user := f"v{number}", 3) == shard) for shard in range(3))
    with Recommender(folder, policy=ALB(rank=2), scale=(1, 5)) as shop:
        for number, user in enumerate((first, second, third)):
            shop.ask(Feedback(f"e{number}", 3, user=user, item="tea"))
        shop.join(first, second)
        shop.join(second, third)
    assert main(["cluster", "move", str(folder), address, "--shards", "3"]) == 0
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path / "snapshots")]) == 0
    with Town(address, tmp_path / "snapshots", shards=3) as town:
        town.settle()
        assert [town.ask(ViewUser(user)).ratings for user in (first, second, third)] == [3, 3, 3]
        assert not town.ask(JoinUsers(first, third)).joined
        assert town.ask(AskVersion()).users == 1
        town.ask(ForgetUser(third))
        town.settle()
        assert town.ask(AskVersion()).ratings == 0
