"""All tests of a policy run in one process: it compiles the policy once."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if not any(item.iter_markers("xdist_group")):
        name = item.path.stem.removeprefix("test_").replace("_", "-")
        item.add_marker(pytest.mark.xdist_group(name))
