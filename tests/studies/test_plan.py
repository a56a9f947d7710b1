"""Studies in TOML."""

from pathlib import Path
from typing import Any

import pytest

from albatross.core.errors import InvalidInput
from albatross.metrics.ndcg import NDCG
from albatross.policies.alb import ALB
from albatross.studies.plan import parse_study, read_study

STUDIES = sorted((Path(__file__).parent.parent.parent / "studies").glob("*.toml"))


def content(**changes: Any) -> dict[str, Any]:
    return {"horizon": 100, "seeds": 2, "datasets": ["gaussian"], "policies": [{"name": "alb"}]} | changes


def tuned(tuning: Any = None, tune: Any = None, **given: Any) -> dict[str, Any]:
    """A study of one policy that is tuned."""
    block = {"name": "alb", "tune": {"ridge": [0.1, 1.0]} if tune is None else tune, **given}
    return {"policies": [block, {"name": "random"}], "tuning": {"seeds": [7, 8]} if tuning is None else tuning}


def test_lists_are_grids_and_every_cell_meets_every_seed() -> None:
    study = parse_study(content(policies=[{"name": "alb", "ridge": [0.1, 1.0], "noise": [0.5, 0.7], "rank": 3}, {"name": "random"}]))
    policies = [cell.policy for cell in study.cells]
    expected = [ALB(rank=3, ridge=ridge, noise=noise) for ridge in (0.1, 1.0) for noise in (0.5, 0.7)]
    assert policies[:4] == expected
    assert len(study.trials()) == 5 * 2
    assert len(set(study.trials())) == 5 * 2


def test_data_sets_have_parameters_and_labels_and_blocks_may_choose_among_them() -> None:
    small = {"name": "gaussian", "label": "small", "n_users": 5}
    study = parse_study(
        content(datasets=["gaussian", small], policies=[{"name": "alb"}, {"name": "random", "on": ["small"]}], seeds=[3, 5])
    )
    assert [(cell.dataset, cell.policy.policy_name(), cell.environment.n_users) for cell in study.cells] == [
        ("gaussian", "alb", 200),
        ("small", "alb", 5),
        ("small", "random", 5),
    ]
    assert study.seeds == (3, 5)


def test_what_is_tuned_is_a_choice_on_seeds_of_its_own() -> None:
    study = parse_study(content(**tuned(tuning={"seeds": [7, 8], "horizon": 40})))
    assert [cell.policy.policy_name() for cell in study.cells] == ["random"]
    (choice,) = study.choices
    assert [cell.policy for cell in choice.cells] == [ALB(ridge=0.1), ALB(ridge=1.0)]
    grid = study.tuning()
    assert [(trial.policy, trial.seed, trial.horizon) for trial in grid.trials()] == [
        (ALB(ridge=ridge), seed, 40) for ridge in (0.1, 1.0) for seed in (7, 8)
    ]
    assert parse_study(content(**tuned())).tuning_horizon == 100


def test_a_data_set_may_have_a_horizon_of_its_own() -> None:
    study = parse_study(content(datasets=["gaussian", {"name": "uniform", "horizon": 30}]))
    assert {trial.dataset: trial.horizon for trial in study.trials()} == {"gaussian": 100, "uniform": 30}


def test_a_data_set_may_be_without_rankings() -> None:
    study = parse_study(content(datasets=[{"name": "gaussian", "ndcg": False}, "uniform"], ndcg=True))
    assert {trial.dataset: trial.ndcg for trial in study.trials()} == {"gaussian": None, "uniform": NDCG()}


def test_a_study_may_be_like_another(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('horizon = 100\nseeds = 2\ndatasets = ["gaussian"]\n[[policies]]\nname = "random"\n')
    other = tmp_path / "other.toml"
    other.write_text('like = "one.toml"\nhorizon = 50\n')
    study = read_study(other)
    assert (study.horizon, study.seeds, study.title) == (50, (0, 1), "other")
    assert [cell.policy.policy_name() for cell in study.cells] == ["random"]
    for name in ("other.toml", "third.toml"):
        (tmp_path / "third.toml").write_text('like = "one.toml"\n')
        other.write_text(f'like = "{name}"\n')
        with pytest.raises(InvalidInput, match=r"other\.toml: like is '\w+\.toml'; accepted: the name of another study"):
            read_study(other)
    other.write_text('like = "absent.toml"\n')
    with pytest.raises(InvalidInput, match=r"absent\.toml is missing"):
        read_study(other)


def test_ndcg_is_a_switch_or_a_table() -> None:
    assert parse_study(content()).ndcg is None
    assert parse_study(content(ndcg=True)).ndcg == NDCG()
    assert parse_study(content(ndcg={"depth": 3})).ndcg == NDCG(depth=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizn": 5}, "unknown key 'horizn'. Did you mean 'horizon'"),
        ({"horizon": 0}, "horizon is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": [1, 1]}, "seeds is"),
        ({"datasets": ["gausian"]}, "Did you mean 'gaussian'"),
        ({"datasets": ["gaussian", "gaussian"]}, "same name"),
        ({"policies": [{"name": "mean-feld"}]}, "Did you mean 'mean-field'"),
        ({"policies": [{"name": "alb", "ridg": 1.0}]}, "Did you mean 'ridge'"),
        ({"policies": [{"name": "alb", "ridge": -1.0}]}, "ridge is -1.0"),
        ({"policies": [{"name": "alb", "on": ["uniform"]}]}, "unknown data set"),
        ({"policies": [{"name": "alb"}, {"name": "alb"}]}, "twice"),
        ({"ndcg": {"deep": 3}}, "unknown key of ndcg 'deep'"),
        ({"datasets": [{"name": "gaussian", "horizon": 0}]}, "horizon is 0"),
        ({"datasets": [{"name": "gaussian", "ndcg": 3}]}, "ndcg of data set 'gaussian' is 3"),
        ({"policies": [{"name": "alb", "tune": {"ridge": [0.1, 1.0]}}]}, r"no seeds to tune on; accepted: a table \[tuning\]"),
        (tuned(tuning={"seeds": [0, 9]}), "tuning.seeds is .* none of them a seed of the study"),
        (tuned(tuning={"seeds": 3}), "tuning.seeds is 3"),
        (tuned(tuning={"seeds": [7], "horizn": 5}), "unknown key of tuning 'horizn'. Did you mean 'horizon'"),
        (tuned(tune={"ridge": 1.0}), "tune is .*accepted: a table of parameters, each with a list of values"),
        (tuned(ridge=0.1), "ridge is given and tuned"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_study(content(**changes))


def test_files_that_are_missing_or_not_toml_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.toml is missing"):
        read_study(tmp_path / "absent.toml")
    file = tmp_path / "broken.toml"
    file.write_text("horizon = ")
    with pytest.raises(InvalidInput, match=r"broken\.toml is not TOML"):
        read_study(file)


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_study_that_is_shipped_can_be_read(file: Path) -> None:
    try:
        study = read_study(file)
    except InvalidInput as error:
        if "is not here" in str(error):
            pytest.skip(f"real data: {error}")
        raise
    assert study.trials()
    assert not set(study.seeds) & set(study.tuning_seeds)


def test_shards_are_an_axis_beside_the_parameters() -> None:
    blocks = [{"name": "alb", "rank": 2}, {"name": "alb", "rank": 2, "shards": [2, 4], "exchange": [50, 200]}]
    study = parse_study(content(policies=blocks))
    assert [(cell.shards, cell.exchange) for cell in study.cells] == [(1, None), (2, 50), (2, 200), (4, 50), (4, 200)]
    assert [cell.label for cell in study.cells[:2]] == ["alb rank=2", "alb rank=2, 2 shards, exchange=50"]
    recipes = [trial.recipe() for trial in study.trials()]
    assert "shards" not in recipes[0]
    assert (recipes[2]["shards"], recipes[2]["exchange"]) == (2, 50)
    for wrong, complaint in (
        ({"name": "pts", "shards": 2}, "policy 'pts' runs on one shard"),
        ({"name": "alb", "shards": 2, "exchange": 0}, "exchange is 0"),
        ({"name": "alb", "shards": 1, "exchange": [10, 20]}, "alb on gaussian is asked for twice"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            parse_study(content(policies=[wrong]))
