"""This package builds Memex: it makes the bundled model's files, and its hooks put them into wheels and source trees."""
