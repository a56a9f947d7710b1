"""The skeleton people copy obeys the contract."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from albatross import checks
from albatross.core.policy import Policy

PATH = Path(__file__).parent.parent / "docs" / "skeleton.py"


@pytest.fixture(scope="module")
def skeleton() -> Policy:
    specification = importlib.util.spec_from_file_location("skeleton", PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["skeleton"] = module
    specification.loader.exec_module(module)
    policy = module.Skeleton()
    assert isinstance(policy, Policy)
    return policy


@pytest.mark.xdist_group("skeleton")
@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in checks.CHECKS.items()])
def test_check(check: Callable[[Policy], None], skeleton: Policy) -> None:
    check(skeleton)
