"""Which lines of the documentation are not typed as they stand, and why."""

LARGE_WORLD = "albatross run --policy alb --dataset gaussian --world n_users=1000000"

INSTEAD: list[tuple[str, str | None, str]] = [
    ("make ", None, "builds an environment of its own; `make test` is what runs this test"),
    ("pip install ", None, "needs a package index; `make dist` installs the wheel with every extra"),
    ("podman ", None, "needs a container engine"),
    ("albatross serve postgresql://", None, "needs a database; tests/service/storage/test_postgres_faults.py starts one"),
    ("albatross cluster ", None, "the same, and Ray; tests/service/cluster/test_cluster.py starts both"),
    ("albatross reproduce", None, "minutes, and half an hour; tests/cli/test_reproduce.py runs it in small"),
    ("albatross study run studies/", None, "minutes to hours; tests/studies/test_library.py reads every file of studies/"),
    (".venv/bin/python -m benchmarks", None, "minutes, or the result of a study; tests/test_benchmarks.py tests what they compare"),
    ("albatross study compare studies/", None, "needs the result of such a study"),
    ("albatross study figure studies/", None, "the same"),
    ("albatross study run grid.toml --engine ray", None, "starts a cluster; tests/studies/test_ray.py does"),
    (
        LARGE_WORLD,
        "albatross run --policy alb --dataset gaussian --world n_users=1000 --world n_items=1000 --world candidates=50 --world fresh=true "
        "--horizon 1000 --seeds 1",
        "nine minutes",
    ),
    (
        "albatross watch --policy mean-field",
        "albatross watch --policy mean-field --policy alb --dataset gaussian --horizon 500 --seeds 2 --speed inf --no-browser --no-stay",
        "opens a browser, and stays",
    ),
    (
        "albatross run --dataset gaussian --json curves.json",
        "albatross run --dataset gaussian --json curves.json --figure regret.png --horizon 1000 --seeds 5",
        "half a minute on busy cores",
    ),
    (
        "albatross run --policy mean-field --policy alb --set ridge=0.01",
        "albatross run --policy mean-field --policy alb --set ridge=0.01 --set noise=0.5 --dataset gaussian --seeds 5 --horizon 1000",
        "the same",
    ),
]
"""How a line begins; what is typed instead, or none; the reason."""
