"""The list of faults does not rot."""

from mutants.listed import TREE, read_list

ALL = read_list()


def test_every_fault_can_be_put_in() -> None:
    for mutant in ALL:
        changed = mutant.applied((TREE / mutant.file).read_text(encoding="utf-8"))
        compile(changed, mutant.file, "exec")
        assert mutant.new != mutant.old, mutant.name


def test_every_fault_names_tests_that_are_there() -> None:
    for mutant in ALL:
        assert mutant.tests or mutant.equivalent, mutant.name
        for test in mutant.tests:
            file, _, function = test.partition("::")
            content = (TREE / file).read_text(encoding="utf-8")
            assert f"def {function.partition('[')[0]}(" in content or not function, f"{mutant.name}: {test}"


def test_there_are_many_and_each_once() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in ALL}) == len({mutant.name for mutant in ALL}) == len(ALL) >= 100
    folders = {path.name for path in (TREE / "src" / "albatross").iterdir() if any(path.glob("*.py"))}
    assert {mutant.file.split("/")[2] for mutant in ALL} == folders
