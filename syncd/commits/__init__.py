"""The committer commits to Git what Memex wrote, and leaves every edit that a person made uncommitted."""
