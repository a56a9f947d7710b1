"""Read-only views: lists of users, items and events, one user, one decision, and its reasons. Nothing here changes or writes anything."""
