"""The nouns: policy, state, agent, environment, recording, vocabulary."""
