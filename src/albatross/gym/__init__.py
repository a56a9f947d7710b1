"""Our worlds and data sets as Gymnasium environments: `gymnasium.make("albatross.gym:albatross/movielens-100k")`.

Importing this registers `albatross/` and the name of each; `Recommendation` takes any environment, or a file of ratings.
"""

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise ImportError("albatross.gym needs Gymnasium, which is not installed; accepted: pip install 'albatross[gym]'") from error

from albatross import datasets
from albatross.environments.synthetic import WORLDS
from albatross.gym.recommendation import Recommendation

__all__ = ["Recommendation"]

for name in (*WORLDS, *datasets.names()):
    gymnasium.register(f"albatross/{name}", "albatross.gym.recommendation:Recommendation", kwargs={"environment": name})
