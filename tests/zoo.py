"""One example of each policy, at a size that suits small worlds. A test fails while this and the folder differ."""

from albatross.core.policy import Policy
from albatross.policies.alb import ALB
from albatross.policies.alb_rs import ALBRS
from albatross.policies.oracle import Oracle
from albatross.policies.random import Random

POLICIES: dict[str, Policy] = {
    "alb": ALB(rank=3, ridge=0.1),
    "alb-rs": ALBRS(rank=3, ridge=0.1),
    "oracle": Oracle(),
    "random": Random(),
}
