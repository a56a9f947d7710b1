"""Numbers do not change silently."""

import os
import subprocess
import sys

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


def test_bits_do_not_depend_on_the_library_for_linear_algebra() -> None:
    """OpenBLAS has code for each processor, which sums in another order. What is learned must not."""
    asked = "from golden.cases import record; from zoo import POLICIES; print(record(POLICIES['spectral-ucb'], 'uniform'))"
    places = {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", asked], env={**os.environ, **places, "OPENBLAS_CORETYPE": core}, stdout=subprocess.PIPE, check=True
        )
        for core in ("Prescott", "Haswell")
    ]
    assert told[0].stdout == told[1].stdout != b""
