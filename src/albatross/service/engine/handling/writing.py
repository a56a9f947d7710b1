"""The handler of each type of request that writes; `looking` has those that only read."""

from albatross.service.api.requests import (
    Feedback,
    FeedbackBatch,
    JoinUsers,
    Recommend,
    RestoreItem,
    RetireItem,
    SetRewards,
    UpsertItem,
    UpsertItems,
)
from albatross.service.engine.group import Handlers
from albatross.service.engine.handling.catalogue import restore_item, retire_item, upsert_item, upsert_items
from albatross.service.engine.handling.rating import feedback, feedback_batch, give_up, set_rewards
from albatross.service.engine.handling.recommending import recommend
from albatross.service.engine.handling.visiting import join_users
from albatross.service.engine.learned.silence import GiveUp

WRITING: Handlers = {
    Recommend: recommend,
    Feedback: feedback,
    FeedbackBatch: feedback_batch,
    UpsertItem: upsert_item,
    UpsertItems: upsert_items,
    GiveUp: give_up,
    SetRewards: set_rewards,
    RetireItem: retire_item,
    RestoreItem: restore_item,
    JoinUsers: join_users,
}
