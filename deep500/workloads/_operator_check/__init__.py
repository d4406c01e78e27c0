"""Checking operators that a user wrote: loading, building, validating and measuring them, one file a step."""
