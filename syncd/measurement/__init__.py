"""Measurement asks a temporary index of the owner's notes questions with known answers, under two setups of search, and compares the results."""
