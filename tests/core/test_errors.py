"""True and false are words, not numbers."""

import pytest

from albatross.core.errors import InvalidInput, check_whole
from albatross.policies.alb import ALB


@pytest.mark.parametrize("given", [True, False])
def test_a_truth_value_is_no_number(given: bool) -> None:
    with pytest.raises(InvalidInput, match=f"n is {given}; accepted: a whole number, at least 0"):
        check_whole("n", given, 0)
    with pytest.raises(InvalidInput, match=f"noise is {given}; accepted: a number, at least 0"):
        ALB(noise=given)
