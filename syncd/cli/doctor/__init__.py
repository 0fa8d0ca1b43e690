"""The doctor checks an installation, names what is wrong, and repairs what it can without a person's decision."""
