"""What a policy is given before the first user arrives: what it declares in `needs`, taken from its world."""

from albatross.core.environment import Environment, Telling, Truth, World
from albatross.core.errors import InvalidInput
from albatross.core.policy import Need, Policy
from albatross.environments.world import truth_of


def told(policy: Policy, environment: Environment, seed: int, world: World | None = None) -> Truth | None:
    """What this policy is given about the world of this seed; None if it needs nothing. An existing world is reused.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.oracle import Oracle
    >>> truth = told(Oracle(), Gaussian(n_users=3, n_items=4), seed=0)
    >>> truth.means.shape, truth.ratings
    ((3, 4), None)
    """
    truth = Truth()
    asked = policy.asks()
    if Need.TRUTH in asked:
        truth = truth_of(environment.world(seed) if world is None else world)
    if Need.RATINGS in asked:
        others = environment.ratings_of_others(seed) if isinstance(environment, Telling) else None
        if others is None:
            raise InvalidInput(
                f"policy {policy.policy_name()!r} must be told {Need.RATINGS}, and {environment.name} keeps none apart; "
                "accepted: a synthetic world, or logged ratings with split=users or split=ratings"
            )
        truth = truth._replace(ratings=others)
    return truth if asked else None
