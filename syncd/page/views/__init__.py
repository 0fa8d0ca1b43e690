"""Each view shows one part of Memex: it names its routes, and turns the daemon's answers into the values of a template."""
