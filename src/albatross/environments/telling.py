"""What a policy is told before the first user arrives: what it declares in `needs`, and what is known of its candidates."""

from albatross.core.environment import Environment, Telling, Truth, World
from albatross.core.errors import InvalidInput
from albatross.core.policy import Need, Policy
from albatross.environments.world import truth_of


def informed(policy: Policy, environment: Environment) -> Policy:
    """The recipe that runs in this environment: where no pair comes back, a policy that wants to know is told so.

    That an item may be shown again does not mean that it is offered again. So where pairs may come back, nothing is told.

    >>> from albatross.environments.synthetic import Gaussian
    >>> from albatross.policies.mean_field import MeanField
    >>> informed(MeanField(), Gaussian(repeats=False)).returns, informed(MeanField(), Gaussian()).returns
    (False, None)
    """
    return policy if environment.parameters().get("repeats", True) else policy.knowing(returns=False)


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
