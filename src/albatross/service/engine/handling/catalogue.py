"""The catalogue: items are added, described, retired and restored."""

from collections.abc import Callable

from msgspec.structs import replace

from albatross.service.api.answers import ItemAccepted, ItemsAccepted
from albatross.service.api.errors import UnknownItem
from albatross.service.api.requests import RestoreItem, RetireItem, UpsertItem, UpsertItems
from albatross.service.api.values import MOST_EVENTS, check_count, check_id
from albatross.service.engine.describing import check_description, check_window, description_of
from albatross.service.engine.group import Finish, Group
from albatross.service.engine.handling.attempting import attempt
from albatross.service.engine.learned.descriptions import merged
from albatross.service.storage.events import Described, Description, Item, Retire


def upsert_item(group: Group, request: UpsertItem) -> Callable[[], ItemAccepted]:
    check_id("item", request.item)
    said = description_of(request)
    check_description(said, {*group.model.described.names, *group.names})
    number = group.view.number_of(request.item)
    before = group.described.get(request.item) or group.model.described.known.get(-1 if number is None else number, Description())
    after = merged(before, said)
    check_window(said, after)
    offered = _offer(group, request.item)
    if after == before:
        return offered
    group.described[request.item] = after
    group.names.update(said.attributes or ())
    seq = group.put_early(Described(group.now, request.item, said))
    return lambda: replace(offered(), seq=seq)


def upsert_items(group: Group, request: UpsertItems) -> Finish:
    check_count("the number of items", len(request.items), 0, MOST_EVENTS)
    answers = [attempt(group, upsert_item, item) for item in request.items]
    return lambda: ItemsAccepted([answer() for answer in answers])


def restore_item(group: Group, request: RestoreItem) -> Finish:
    _check_known(group, request.item)
    return _offer(group, request.item)


def retire_item(group: Group, request: RetireItem) -> Finish:
    number = _check_known(group, request.item)
    seq = group.head
    if number not in group.view.retired:
        seq = group.put_early(Retire(group.now, request.item))
        group.view.retire(number)
    return lambda: ItemAccepted(request.item, retired=True, created=False, seq=seq, model_seq=group.model.seq)


def _offer(group: Group, item: str) -> Callable[[], ItemAccepted]:
    number = group.view.number_of(item)
    created, seq = number is None, group.head
    if created:
        group.view.check_room(1)
    if number is None or number in group.view.retired:
        seq = group.put_early(Item(group.now, item))
        group.view.offer(item)
    return lambda: ItemAccepted(item, retired=False, created=created, seq=seq, model_seq=group.model.seq)


def _check_known(group: Group, item: str) -> int:
    check_id("item", item)
    number = group.view.number_of(item)
    if number is None:
        raise UnknownItem(f"item is {item!r}; accepted: an item there is")
    return number
