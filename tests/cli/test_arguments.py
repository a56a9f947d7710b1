"""Words of the command line."""

import pytest

from albatross.core.errors import InvalidInput
from albatross.service.settings.kinds import parse_scale


@pytest.mark.parametrize("text", ["5..1", "3..3", "1-5", "1..", "..5", "a..b", "1..inf", "nan..5"])
def test_a_scale_has_two_ends_the_lower_first(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"accepted: lowest\.\.highest, as 1\.\.5"):
        parse_scale(text)
