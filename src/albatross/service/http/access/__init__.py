"""Who may ask: Host and Origin, keys with scopes, free places, and turns of batches."""
