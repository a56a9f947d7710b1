"""Recipes accept what they say they accept, as values and as words."""

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any

import pytest

from albatross import policies
from albatross.core.errors import InvalidInput
from albatross.core.parameters import Recipe, describe, parameter
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB


@dataclass(frozen=True)
class Sample(Recipe):
    size: int = parameter(3, "how many", at_least=1, at_most=9)
    weight: float = parameter(0.5, "how much", above=0, below=1)
    limit: float | None = parameter(None, "how far", at_least=0)
    eager: bool = parameter(False, "whether at once")
    order: str = parameter("first", "which comes first", choices=("first", "last"))


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("rank", 0, "a whole number, at least 1"),
        ("rank", -3, "a whole number, at least 1"),
        ("rank", 2.5, "a whole number, at least 1"),
        ("rank", 3.0, "a whole number, at least 1"),
        ("rank", True, "a whole number, at least 1"),
        ("rank", "5", "a whole number, at least 1"),
        ("rank", None, "a whole number, at least 1"),
        ("ridge", 0, "a number, above 0"),
        ("ridge", -0.1, "a number, above 0"),
        ("ridge", float("nan"), "a number, above 0"),
        ("ridge", float("inf"), "a number, above 0"),
        ("user_ridge", 0.0, "a number or none, above 0"),
        ("item_ridge", -1.0, "a number or none, above 0"),
        ("noise", -0.5, "a number, at least 0"),
        ("noise", float("nan"), "a number, at least 0"),
        ("confidence", 0.0, "a number, above 0, below 1"),
        ("confidence", 1.0, "a number, above 0, below 1"),
        ("confidence", 1, "a number, above 0, below 1"),
        ("confidence", "0.1", "a number, above 0, below 1"),
        ("norm_bound", -1.0, "a number, at least 0"),
        ("item_scale", 0.0, "a number, above 0"),
    ],
)
def test_a_value_out_of_range_is_refused(name: str, value: Any, accepted: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ALB(**{name: value})
    assert str(refusal.value).startswith(f"ALB: {name} is {value!r}")
    assert str(refusal.value).endswith(f"accepted: {accepted}")


def test_values_at_the_border_are_accepted() -> None:
    assert ALB(rank=1, ridge=1e-300, noise=0, confidence=0.999, norm_bound=0).rank == 1
    assert Sample(size=9).size == 9
    with pytest.raises(InvalidInput, match="size is 10; accepted: a whole number, at least 1, at most 9"):
        Sample(size=10)


def test_a_whole_number_serves_as_a_number() -> None:
    assert ALB(ridge=1) == ALB(ridge=1.0)
    assert type(ALB(ridge=1).ridge) is float
    assert hash(ALB(ridge=1)) == hash(ALB(ridge=1.0))


def test_only_listed_words_are_accepted() -> None:
    with pytest.raises(InvalidInput, match="Sample: order is 'middle'; accepted: first, last"):
        Sample(order="middle")
    with pytest.raises(InvalidInput, match="Sample: order is 'middle'; accepted: first, last"):
        Sample.from_text({"order": "middle"})


def test_a_recipe_is_frozen_and_equal_to_its_like() -> None:
    recipe = ALB(rank=3)
    assert type(recipe)(**recipe.parameters()) == recipe
    assert recipe != ALB(rank=4)
    with pytest.raises(FrozenInstanceError):
        recipe.rank = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({}, Sample()),
        ({"size": "7", "weight": "0.25"}, Sample(size=7, weight=0.25)),
        ({"weight": "1e-3"}, Sample(weight=0.001)),
        ({"limit": "2"}, Sample(limit=2.0)),
        ({"limit": "none"}, Sample()),
        ({"limit": "None"}, Sample()),
        ({"eager": "true"}, Sample(eager=True)),
        ({"eager": "False"}, Sample()),
        ({"order": "last"}, Sample(order="last")),
    ],
)
def test_words_become_values(text: dict[str, str], expected: Sample) -> None:
    assert Sample.from_text(text) == expected


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("size", "many", "a whole number, at least 1, at most 9"),
        ("size", "2.5", "a whole number, at least 1, at most 9"),
        ("size", "0", "a whole number, at least 1, at most 9"),
        ("size", "", "a whole number, at least 1, at most 9"),
        ("size", "none", "a whole number, at least 1, at most 9"),
        ("weight", "nan", "a number, above 0, below 1"),
        ("weight", "1", "a number, above 0, below 1"),
        ("limit", "-1", "a number or none, at least 0"),
        ("limit", "far", "a number or none, at least 0"),
        ("eager", "yes", "true or false"),
    ],
)
def test_words_that_mean_no_accepted_value_are_refused(name: str, text: str, accepted: str) -> None:
    with pytest.raises(InvalidInput, match=f"Sample: {name} is .*; accepted: {accepted}$"):
        Sample.from_text({name: text})


def test_an_unknown_parameter_is_answered_with_the_nearest() -> None:
    answer = r"unknown parameter of \w+ 'rigde'\. Did you mean 'ridge'\? There is: confidence, "
    with pytest.raises(InvalidInput, match=answer):
        ALB.from_text({"rigde": "1"})
    with pytest.raises(InvalidInput, match=answer):
        policies.create("alb", {"rigde": 1.0})
    with pytest.raises(InvalidInput, match=r"unknown parameter of ALB 'xyzzy'\. There is: confidence, "):
        ALB.from_text({"xyzzy": "1"})


def test_an_unknown_policy_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"unknown policy 'randm'\. Did you mean 'random'\? There is: alb, "):
        policies.find("randm")


def test_what_a_field_accepts_in_words() -> None:
    hints = (int, float, float | None, bool, str)
    assert {field.name: describe(field, hint) for field, hint in zip(fields(Sample), hints, strict=True)} == {
        "size": "a whole number, at least 1, at most 9",
        "weight": "a number, above 0, below 1",
        "limit": "a number or none, at least 0",
        "eager": "true or false",
        "order": "first, last",
    }


def test_candidates_of_a_world_are_at_most_its_items() -> None:
    with pytest.raises(InvalidInput, match="Gaussian: candidates is 6; accepted: at most n_items, 5"):
        Gaussian(n_items=5, candidates=6)
    with pytest.raises(InvalidInput, match="Gaussian: candidates is 0; accepted: a whole number or none, at least 1"):
        Gaussian(candidates=0)
