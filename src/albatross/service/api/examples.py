"""Examples of requests and answers, for the OpenAPI description. The tests send them."""

from albatross.service.api.answers import (
    Accepted,
    BackupTaken,
    ConfidenceRegion,
    Decision,
    Forgotten,
    HistoryEntry,
    ItemAccepted,
    LineAnswer,
    RewardsAccepted,
    Series,
    ShownItem,
    SnapshotTaken,
    UsersJoined,
    UserView,
    Version,
)
from albatross.service.api.rules import Quota, Where
from albatross.service.api.views import (
    Access,
    Because,
    DecidedItem,
    DecisionView,
    Disk,
    EventList,
    ItemList,
    ListedItem,
    ListedUser,
    LoggedEvent,
    NewItems,
    PastView,
    Reason,
    SimilarItem,
    SimilarList,
    UserList,
    VerifyReport,
    WhatIf,
)

SHOWN = ShownItem("tea", 1, 4.75, 4.25, 0.5, 0.9625)
REGION = ConfidenceRegion([0.5, 1.0], 1.5, [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
ITEM = [("an item", {"item": "tea"})]
USER = [("a user", {"user": "ann"})]
JOIN = [("a visitor has logged in", {"visitor": "visitor-41-5f0c8e2a9b1d3c47", "user": "ann"})]
JOINED = UsersJoined("visitor-41-5f0c8e2a9b1d3c47", "ann", True, 43, 43)
UPSERT = [
    *ITEM,
    (
        "an item with attributes",
        {"item": "mate", "attributes": {"category": "drinks", "tags": ["south", "hot"], "price": 4.5}, "in_stock": True},
    ),
    ("available from one day to another", {"item": "stollen", "available_from": 1795996800, "available_until": 1798675200}),
]
ITEM_LINES = '{"item": "tea", "attributes": {"category": "drinks"}}\n{"item": "mate", "in_stock": false}\n'
ITEM_LINE = LineAnswer(1, 200, 43, model_seq=44, created=True)
SIMILAR = [("items like tea", {"item": "tea"})]
SIMILAR_ITEMS = SimilarList([SimilarItem("mate", 0.92, 5)], 42)
ITEM_ACCEPTED = ItemAccepted("tea", False, True, 43, 43)
VERSION = Version(
    "0.1.0", "mean-field", {"rank": 5, "refreshes": 1}, (1.0, 5.0), 0, 42, "9f86d081", "2c26b46b", 42, "fcde2b2e", 3, 3, 0, 4, 30, "commit"
)
RECOMMEND = [
    ("one item of the whole catalogue", {"user": "ann"}),
    ("for an unknown visitor; the answer contains a new id", {"user": None}),
    (
        "two of these that the user has not rated, with an explanation",
        {"user": "ann", "n": 2, "candidates": ["tea", "coffee", "mate"], "exclude_seen": "rated", "explain": True, "request_id": "r-1"},
    ),
    ("with the reason in words", {"user": "ann", "explain": "reasons"}),
    (
        "ten drinks, at most two per brand, a tenth of the places for new items",
        {
            "user": "ann",
            "n": 10,
            "where": {"all": [{"attribute": "category", "is": "drinks"}, {"none": [{"attribute": "price", "from": 100}]}]},
            "quotas": [{"attribute": "brand", "most": 2}],
            "fresh": {"share": 0.1, "below": 20},
        },
    ),
    ("popular items", {"user": "ann", "by": "popular"}),
]
FEEDBACK = [
    ("a rating without a decision", {"event_id": "e-1", "user": "ann", "item": "tea", "rating": 4.5}),
    ("a rating for a decision", {"event_id": "e-2", "decision_id": "41-0c8e5f2a", "item": "tea", "rating": 4.5}),
]
EVENT = ("an event for a decision", {"event_id": "e-5", "decision_id": "41-0c8e5f2a", "item": "tea", "event": "click"})
REWARDS = [("three events", {"events": {"click": 1, "cart": 3, "purchase": 5}})]
REWARDS_ACCEPTED = RewardsAccepted({"click": 1.0, "cart": 3.0, "purchase": 5.0}, 43, 43)
LINES = '{"event_id": "e-3", "user": "ann", "item": "tea", "rating": 4.5}\n{"event_id": "e-4", "user": "bob", "item": "tea", "rating": 2}\n'
NOTHING: list[tuple[str, dict[str, str]]] = [("no parameters", {})]
SERIES = Series(100, [100, 37], [3.5, 3.9], [0.11, 0.15], [0.9, 0.95], [0.6, 0.4])
DECISION = Decision("41-0c8e5f2a", "ann", "mean-field", 40, [SHOWN], 3)
HISTORY = [HistoryEntry(42, 1794868200.0, "tea", 4.5, "41-0c8e5f2a", 4.25, 4.75)]
USER_VIEW = UserView("ann", 3, ["mate"], [0.5, 1.0], REGION, [SHOWN], 42, HISTORY)
CLOSE = ShownItem("mate", 1, 4.5, 3.75, 0.75, None)

ACCEPTED = Accepted(42, True, False, 42)
LINE_ANSWER = LineAnswer(1, 200, 42, True, False, 42)
FORGOTTEN = Forgotten("ann", 44, 7, 44)
SNAPSHOT_TAKEN = SnapshotTaken(42, "2c26b46b", "shop.albatross/snapshots/42.npz")
BACKUP_TAKEN = BackupTaken(42, "9f86d081", "shop.albatross/backups/000000000000042")

DISK = Disk(81_920, 40_000_000_000, 40, "7d865e95", 42)
ACCESS = Access(True, ["read"], "0c8e5f2a", "2027-01-01T00:00:00Z")
VIEW_USER = [*USER, ("a user and the latest ratings", {"user": "ann", "history": 10})]
LIST = [("the first hundred", {}), ("ten whose id contains a text", {"n": 10, "search": "te"})]
USERS = UserList([ListedUser("ann", 3)], None, 1, 42)
LIST_ITEMS = [*LIST, ("with mean and bonus for one user", {"user": "ann"})]
ITEMS = ItemList([ListedItem("tea", 3, 4.25, 5, False, 4.0, 0.5, 0.75, -0.25)], None, 1, [0.7, 0.2], 42)
LIST_EVENTS = [("the latest", {}), ("before an event", {"before": 3, "n": 10})]
EVENTS = EventList([LoggedEvent(42, "feedback", 1794868200.0, "ann", "tea", 4.5, "41-0c8e5f2a", mean=4.25, score=4.75)], 42)
VIEW_DECISION = [("a decision", {"decision_id": "41-0c8e5f2a"})]
DECIDED = [DecidedItem("tea", 1, 4.75, 4.25, 0.5, 0.9625, False, 4.5, 42, 3, Because(4.25, 3.5, [Reason("tea", 4.5, 0.75)], 0.0))]
RULES = (Where(attribute="category", is_=["drinks", "gifts"]), [Quota("brand", 2)], NewItems(0.1, 20))
DECISION_VIEW = DecisionView("41-0c8e5f2a", 41, 1794868190.0, "ann", "mean-field", 40, 3, 3, "none", DECIDED, [CLOSE], 42, None, *RULES)
SUPPOSE = [("if she rated tea with 5", {"user": "ann", "item": "tea", "rating": 5})]
WHAT_IF = WhatIf("ann", "tea", 5.0, [SHOWN], [SHOWN, CLOSE], 42, "2c26b46b")
LOOK_BACK = [("the first event", {"seq": 1}), ("the same with a user", {"seq": 40, "user": "ann"})]
PAST = PastView(40, 1794868180.0, 3, 3, 3, 29, "7d865e95", SERIES, USER_VIEW)
VERIFIED = VerifyReport(True, 42, "9f86d081", "2c26b46b", 4, 30, [40], [], 0, 0.2)
