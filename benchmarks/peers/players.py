"""The players: each library as shipped, and what it was given.

MovieLens has no features, and a linear bandit cannot do without: as the context of a user, the LinUCBs and Vowpal Wabbit get 1 and five
coordinates from a singular value decomposition of *all* ratings, those yet to come included. That is hindsight which ALB does not
have. BiasedMF and ALB get the numbers of user and item, and begin with nothing. All parameters are the defaults, but for what is said.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Items = NDArray[np.int32]

HIGHEST = 5.0
"""The best rating, for libraries that need rewards of at most 1."""


class Player(ABC):
    """Decides among all items, then among those the user has rated, because only these have a rating; and learns."""

    requirement: ClassVar[str]
    """The package it comes from."""
    remark: ClassVar[str]
    """What it does differently."""

    def __init__(self, n_users: int, n_items: int, contexts: NDArray[np.float64]) -> None:
        self.n_users, self.n_items, self.contexts = n_users, n_items, contexts
        self.scores = np.zeros(n_items)
        self.prepare()

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def decide(self, user: int) -> None:
        """Score all items, or choose among all of them. Timed."""

    def among(self, user: int, offered: Items) -> int:
        """The item to show, of those offered. Not timed: with scores of all items, nothing remains to be done."""
        return int(offered[self.scores[offered].argmax()])

    @abstractmethod
    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        """Take in the rating of the item shown. Timed."""


class Albatross(Player):
    requirement = "albatross-bandits"
    remark = "called from Python, a decision at a time, as the others; defaults"
    policy = "mean-field"

    def prepare(self) -> None:
        from albatross import Agent, policies

        warm, self.agent = (Agent(policies.create(self.policy), self.n_users, self.n_items) for _ in range(2))
        warm.select(0)  # compiles or loads
        warm.update(0, 0, 1.0)
        self.scores = self.agent.slate.scores

    def decide(self, user: int) -> None:
        self.agent.select(user)

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        self.agent.update(user, item, rating)


class AlbatrossALB(Albatross):
    remark = "ALB called from Python, a decision at a time, as the others; rank 5, λ = 1, σ = 0.4"
    policy = "alb"


class RiverLinUCB(Player):
    requirement = "river"
    remark = "a Bayesian regression per item in Python dictionaries; given contexts; asked twice, as it names one item only"

    def prepare(self) -> None:
        from river import bandit

        self.policy: Any = bandit.LinUCBDisjoint(seed=0)
        self.features = [dict(enumerate(context)) for context in self.contexts.tolist()]
        self.everything = list(range(self.n_items))

    def decide(self, user: int) -> None:
        self.policy.pull(self.everything, context=self.features[user])

    def among(self, user: int, offered: Items) -> int:
        return int(self.policy.pull(offered.tolist(), context=self.features[user]))

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        self.policy.update(item, self.features[user], rating)


class RiverBiasedMF(Player):
    requirement = "river"
    remark = "stochastic gradient descent on biases and 5 factors; not a bandit: shows what it predicts to be best, and never explores"

    def prepare(self) -> None:
        from river import reco

        self.model: Any = reco.BiasedMF(n_factors=5, seed=0)

    def decide(self, user: int) -> None:
        predict = self.model.predict_one
        self.scores[:] = [predict(user, item) for item in range(self.n_items)]

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        self.model.learn_one(user, item, y=rating)


class ContextualBandits(Player):
    requirement = "contextualbandits"
    remark = "an inverse per item, updated by Sherman and Morrison, in single precision; given contexts, ratings ÷ 5"

    def prepare(self) -> None:
        from contextualbandits.online import LinUCB

        self.policy: Any = LinUCB(self.n_items, fit_intercept=False, random_state=1)
        self.rated = False

    def decide(self, user: int) -> None:
        if self.rated:  # before its first rating it has no scores
            self.scores[:] = self.policy.decision_function(self.contexts[user : user + 1])[0]

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        self.policy.partial_fit(self.contexts[user : user + 1], np.array([item]), np.array([rating / HIGHEST]))
        self.rated = True


class MABWiser(Player):
    requirement = "mabwiser"
    remark = "a ridge regression per item in NumPy, its matrix inverted anew after each rating; given contexts"

    def prepare(self) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self.policy: Any = MAB(list(range(self.n_items)), LearningPolicy.LinUCB(), seed=0)
        self.rated = False

    def decide(self, user: int) -> None:
        if self.rated:
            expectations = self.policy.predict_expectations(self.contexts[user : user + 1])
            self.scores[:] = [expectations[item] for item in range(self.n_items)]

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        train = self.policy.partial_fit if self.rated else self.policy.fit
        train([item], [rating], self.contexts[user : user + 1])
        self.rated = True


class Mab2Rec(Player):
    requirement = "mab2rec"
    remark = "mabwiser's LinUCB behind a recommender that ranks all items and returns the best ten; given contexts"

    def prepare(self) -> None:
        from mab2rec import BanditRecommender, LearningPolicy

        self.policy: Any = BanditRecommender(LearningPolicy.LinUCB(), seed=0)
        self.policy.set_arms(list(range(self.n_items)))
        self.rated = False

    def decide(self, user: int) -> None:
        if self.rated:
            self.policy.recommend(self.contexts[user : user + 1])

    def among(self, user: int, offered: Items) -> int:
        if not self.rated:
            return int(offered[0])
        expectations = self.policy.predict_expectations(self.contexts[user : user + 1])
        return int(max(offered.tolist(), key=lambda item: float(expectations[item])))

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        train = self.policy.partial_fit if self.rated else self.policy.fit
        train([item], [rating], self.contexts[user : user + 1])
        self.rated = True


class Implicit(Player):
    requirement = "implicit"
    remark = (
        "alternating least squares with 5 factors, of which the user's and the item's are refitted after each rating; takes a rating "
        "as the weight of a like, and is made to be fitted offline; not a bandit: never explores"
    )

    def prepare(self) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        self.model: Any = AlternatingLeastSquares(factors=5, num_threads=1, iterations=1, random_state=0)
        self.by_user: list[dict[int, float]] = [{} for _ in range(self.n_users)]
        self.by_item: list[dict[int, float]] = [{} for _ in range(self.n_items)]
        self.rated = False

    def decide(self, user: int) -> None:
        if self.rated:
            self.scores[:] = self.model.item_factors @ self.model.user_factors[user]

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        self.by_user[user][item] = self.by_item[item][user] = rating
        if self.rated:
            self.model.partial_fit_users([user], self._row(self.by_user[user], self.n_items))
            self.model.partial_fit_items([item], self._row(self.by_item[item], self.n_users))
            return
        from scipy.sparse import csr_matrix

        first = csr_matrix(([rating], ([user], [item])), shape=(self.n_users, self.n_items), dtype=np.float32)
        self.model.fit(first, show_progress=False)
        self.rated = True

    @staticmethod
    def _row(entries: dict[int, float], size: int) -> Any:
        from scipy.sparse import csr_matrix

        columns = np.fromiter(entries, np.int32, len(entries))
        return csr_matrix((np.fromiter(entries.values(), np.float32, len(entries)), columns, np.array([0, len(entries)])), shape=(1, size))


class VowpalWabbit(Player):
    requirement = "vowpalwabbit"
    remark = "cb_explore_adf, ε = 0.05: gradient descent on item × context; given contexts, cost −rating ÷ 5; learns with the items offered"

    def prepare(self) -> None:
        from vowpalwabbit import Workspace

        self.workspace: Any = Workspace("--cb_explore_adf -q UI --quiet --random_seed 0")
        self.random = np.random.default_rng(0)
        self.shared = ["shared |U " + " ".join(f"{place}:{value:.6g}" for place, value in enumerate(row)) for row in self.contexts.tolist()]
        self.actions = [f"|I {item}" for item in range(self.n_items)]
        self.everything = "\n".join(self.actions)

    def decide(self, user: int) -> None:
        self.workspace.predict(f"{self.shared[user]}\n{self.everything}")

    def among(self, user: int, offered: Items) -> int:
        lines = [self.shared[user], *(self.actions[item] for item in offered)]
        chances = np.array(self.workspace.predict("\n".join(lines)))
        place = int(self.random.choice(offered.size, p=chances / chances.sum()))
        self.chance = chances[place]
        return int(offered[place])

    def learn(self, user: int, item: int, offered: Items, rating: float) -> None:
        label = f"0:{-rating / HIGHEST:.6g}:{self.chance:.6g} "
        lines = [self.shared[user], *((label if other == item else "") + self.actions[other] for other in offered.tolist())]
        self.workspace.learn("\n".join(lines))


PLAYERS: dict[str, type[Player]] = {
    "albatross mean-field": Albatross,
    "albatross ALB": AlbatrossALB,
    "contextualbandits LinUCB": ContextualBandits,
    "mabwiser LinUCB": MABWiser,
    "mab2rec LinUCB": Mab2Rec,
    "river LinUCBDisjoint": RiverLinUCB,
    "river BiasedMF": RiverBiasedMF,
    "implicit ALS": Implicit,
    "Vowpal Wabbit": VowpalWabbit,
}
