"""Consolidation scans each workspace, proposes changes in a report note, and carries out those that the owner ticks."""
