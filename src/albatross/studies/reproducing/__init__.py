"""The paper's evaluation: its studies, its claims and our verdicts; and our policy in every protocol."""
