"""Numbers do not change silently."""

import pytest
from golden.cases import PROTOCOLS, case_name, record, recorded

from zoo import POLICIES

EXAMPLES = [pytest.param(name, id=name, marks=pytest.mark.xdist_group(name)) for name in POLICIES]


def test_there_is_a_recording_of_every_policy_in_every_protocol() -> None:
    expected = sorted(case_name(name, protocol) for name in POLICIES for protocol in PROTOCOLS)
    assert list(recorded()) == expected, "after a change of policies or protocols: make golden"


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_trial_is_what_it_was(name: str, protocol: str) -> None:
    kept = recorded()[case_name(name, protocol)]
    assert record(POLICIES[name], protocol) == kept, "published numbers may have changed; if they should: make golden, and say why"
