"""Steps and trials of policies, in this process: ALB, the default policy, rivals, large catalogues."""
