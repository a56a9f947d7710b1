"""What the service publishes about itself: OpenAPI, TypeScript declarations, and the files of the page."""
