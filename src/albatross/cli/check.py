"""`albatross check`: the contract, checked for one policy."""

from typing import Annotated

from cyclopts import Parameter

from albatross import policies
from albatross.checks import verdicts
from albatross.cli.arguments import parse_settings
from albatross.core.errors import InvalidInput


def check(policy: str, *, setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None) -> None:
    """Run every check of the contract on a policy. The exit code is 2 if one fails.

    Example: albatross check thompson.py:Thompson --set rank=3

    Parameters
    ----------
    policy
        file.py:Class, module:Class, or a name. See: albatross list.
    setting
        Parameter of the policy, as key=value; may be given several times.
    """
    checked = policies.find(policy).from_text(parse_settings("--set", setting or []))
    failed = 0
    for name, complaint in verdicts(checked):
        print(f"{name.replace('_', ' ')}: {'passed' if complaint is None else complaint}", flush=True)
        failed += complaint is not None
    if failed:
        raise InvalidInput(f"{policy}: {failed} {'check' if failed == 1 else 'checks'} failed")
    print(f"{checked.policy_name()} passes every check")
