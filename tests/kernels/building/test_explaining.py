"""Errors of the compiler, as one clear sentence."""

from pathlib import Path

import pytest

from albatross import Agent, policies
from albatross.core.errors import InvalidInput

SKELETON = (Path(__file__).parents[3] / "docs" / "skeleton.py").read_text()
BEGINNING = "    everything = candidates.size == 0  # the whole catalogue\n"
RETURN = "    return chosen, propensity + (1.0 - settings.exploration if chosen == best else 0.0)"
STATE = "return State(no_pairs(n_users))"


def written(*lines: str) -> str:
    """The skeleton with these lines at the beginning of its select."""
    assert BEGINNING in SKELETON
    return SKELETON.replace(BEGINNING, "".join(f"    {line}\n" for line in lines) + BEGINNING)


def changed(before: str, after: str) -> str:
    assert before in SKELETON
    return SKELETON.replace(before, after)


LINE = SKELETON[: SKELETON.index(BEGINNING)].count("\n") + 1
"""Where what is written begins."""


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        pytest.param(
            written("order = np.arange(candidates.size)", "order[0] = 1"),
            rf"mine.py, line {LINE} \(order = np.arange\(candidates.size\)\): kernels may not allocate .* working arrays from scratch",
            id="arange",
        ),
        pytest.param(
            written("order = [1, 2]", "order[0] = user"), rf"line {LINE} \(order = \[1, 2\]\): kernels may not allocate", id="list"
        ),
        pytest.param(
            written("x = np.einsum('i,i', slate.means, slate.means)"), rf"line {LINE} .*: compiled code has no numpy.einsum", id="einsum"
        ),
        pytest.param(
            written("x = 1.0", "if user > 3:", "    x = slate.means", "slate.scores[0] = x"),
            rf"line {LINE + 3} .*: x is once a number and once an array; accepted: one type for each variable",
            id="unify",
        ),
        pytest.param(written("x = state.counts[user]"), rf"line {LINE} .*: State has no field 'counts'; it has: pairs", id="field"),
        pytest.param(written("x = settings.epsilon"), r"Settings has no field 'epsilon'; it has: exploration", id="setting"),
        pytest.param(written("x = kount + 1"), rf"line {LINE} .*: kount is not defined", id="undefined"),
        pytest.param(written("x = random.choice(slate.means)"), r"compiled code has no random.choice", id="random"),
        pytest.param(
            written("x = slate.means['a']"), rf"line {LINE} .*: compiled code cannot do 'getitem' with what it is given", id="index"
        ),
        pytest.param(
            written("import math"), rf"line {LINE} \(import math\): compiled code cannot do this: Use of unsupported", id="bytecode"
        ),
        pytest.param(
            written("x = helped(user)").replace("@implements(select", "def helped(x):\n    return x\n\n\n@implements(select"),
            r"line \d+ \(x = helped\(user\)\): helped is no kernel; accepted: @kernel above it",
            id="no kernel",
        ),
        pytest.param(
            changed(RETURN, "    return chosen"), r"mine.py: select returns something else; accepted: two numbers, the pos", id="one"
        ),
        pytest.param(changed(RETURN, "    chosen = 1"), r"mine.py: select returns something else; accepted: two numbers", id="nothing"),
        pytest.param(changed(RETURN, "    return float(chosen), 1.0"), r"returns the position \d\.0; accepted: a whole number", id="float"),
        pytest.param(
            changed("@implements(select, State)\n", ""),
            r"mine.py: nothing says what select does on State; accepted: .*@implements",
            id="no select",
        ),
        pytest.param(changed(STATE, "return State([1, 2])"), r"state.pairs is of type list; accepted: an array of numbers", id="a list"),
        pytest.param(changed(STATE, "return State(np.array([None]))"), r"state.pairs is of type array of object; accepted", id="objects"),
        pytest.param(changed(STATE, "return {'pairs': 1}"), r"state is of type dict; accepted: a NamedTuple of arrays", id="a dictionary"),
        pytest.param(changed(STATE, "return State(3)"), r"state.pairs is of type int; accepted: an array of length 1", id="a number"),
        pytest.param(
            changed("Settings(self.exploration)", "Settings('often')"),
            r"settings.exploration is of type str; accepted: a number",
            id="word",
        ),
        pytest.param(changed("Scratch(np.zeros(n_items))", "Scratch([0.0])"), r"scratch.means is of type list; accepted", id="scratch"),
    ],
)
def test_the_sentence_names_the_line_and_the_cause(source: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=sentence) as raised:
        Agent(policies.create("mine.py:Skeleton"), 3, 4).select(0)
    assert "\n" not in str(raised.value)


def test_a_policy_without_update_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(changed("@implements(update, State)\n", ""))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="nothing says what update does on State"):
        Agent(policies.create("mine.py:Skeleton"), 3, 4).update(0, 1, 2.0)
