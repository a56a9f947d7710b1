"""Whether caching each user's V until one of its items changes would save time: `python -m benchmarks.steps.changes`."""

from albatross import environments, simulate
from albatross.core.recording import Recording
from albatross.policies.alb import ALB


def shares(recording: Recording) -> tuple[float, float, float]:
    """Share of a returning user's items that changed since the last visit; share of visits with no change; number of items."""
    rated: dict[int, set[int]] = {}
    last_visit: dict[int, int] = {}
    last_change: dict[int, int] = {}
    changed = looked_at = undisturbed = visits = 0
    for step, (user, item) in enumerate(zip(recording.users.tolist(), recording.items.tolist(), strict=True)):
        own = rated.setdefault(user, set())
        if own:
            count = sum(last_change[each] > last_visit[user] for each in own)
            changed, looked_at = changed + count, looked_at + len(own)
            undisturbed, visits = undisturbed + (count == 0), visits + 1
        own.add(item)
        last_change[item] = last_visit[user] = step
    return changed / looked_at, undisturbed / visits, looked_at / visits


if __name__ == "__main__":
    print("| world | items changed since the last visit | visits that find none changed | items per user |", "| --- " * 4 + "|", sep="\n")
    for name, policy in (("gaussian", ALB(ridge=0.01, noise=0.5)), ("movielens-100k", ALB())):
        items, visits, size = shares(simulate(policy, environments.create(name), horizon=25_000, seed=0))
        print(f"| {name} | {items:.0%} | {visits:.0%} | {size:.1f} |")
