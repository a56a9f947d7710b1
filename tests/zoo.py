"""One example of each policy, at a size that suits small worlds. A test fails while this and the folder differ."""

from albatross.core.policy import Policy
from albatross.policies.alb import ALB
from albatross.policies.alb_rs import ALBRS
from albatross.policies.als import ALS
from albatross.policies.aspect_model import AspectModel
from albatross.policies.beware import BeWARE
from albatross.policies.block_model import BlockModel
from albatross.policies.club import CLUB
from albatross.policies.collaborative_greedy import CollaborativeGreedy
from albatross.policies.ensemble import Ensemble
from albatross.policies.epsilon_als import EpsilonALS
from albatross.policies.etc_completion import ETCCompletion
from albatross.policies.factor_ucb import FactorUCB
from albatross.policies.icf import ICF
from albatross.policies.ids import IDS
from albatross.policies.item_mean import ItemMean
from albatross.policies.item_ucb import ItemUCB
from albatross.policies.knn_bandit import KNNBandit
from albatross.policies.latent_ucb import LatentUCB
from albatross.policies.mean_field import MeanField
from albatross.policies.nakamura import Nakamura
from albatross.policies.nmf_bandit import NMFBandit
from albatross.policies.oful import OFUL
from albatross.policies.oracle import Oracle
from albatross.policies.popularity_memory import PopularityMemory
from albatross.policies.pts import PTS
from albatross.policies.pts_b import PTSB
from albatross.policies.random import Random
from albatross.policies.smooth_explore import SmoothExplore
from albatross.policies.spectral_ucb import SpectralUCB
from albatross.policies.user_ucb import UserUCB

POLICIES: dict[str, Policy] = {
    "alb": ALB(rank=3, ridge=0.1),
    "alb-rs": ALBRS(rank=3, ridge=0.1),
    "als": ALS(rank=3, refit_interval=20),
    "aspect-model": AspectModel(n_types=3, queries=5),
    "beware": BeWARE(rank=3),
    "block-model": BlockModel(n_user_types=3, n_item_types=3),
    "club": CLUB(rank=3),
    "collaborative-greedy": CollaborativeGreedy(variant="repeat"),
    "ensemble": Ensemble(n_chains=5, rank=3),
    "epsilon-als": EpsilonALS(rank=3),
    "etc-completion": ETCCompletion(rank=3, exploration=600),
    "factor-ucb": FactorUCB(rank=3, user_exploration=1.0, item_exploration=1.0),
    "icf": ICF(rank=3),
    "ids": IDS(rank=3),
    "item-mean": ItemMean(),
    "item-ucb": ItemUCB(),
    "knn-bandit": KNNBandit(),
    "latent-ucb": LatentUCB(),
    "mean-field": MeanField(rank=3),
    "nakamura": Nakamura(rank=3),
    "nmf-bandit": NMFBandit(rank=3),
    "oful": OFUL(),
    "oracle": Oracle(),
    "popularity-memory": PopularityMemory(),
    "pts": PTS(n_particles=10, rank=3),
    "pts-b": PTSB(n_particles=10, rank=3),
    "random": Random(),
    "smooth-explore": SmoothExplore(rank=2),
    "spectral-ucb": SpectralUCB(n_eigenvectors=8, neighbours=3),
    "user-ucb": UserUCB(),
}
