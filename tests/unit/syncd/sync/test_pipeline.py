"""What the pipeline states of itself."""

from __future__ import annotations


def test_it_states_what_it_works_on_until_all_is_read(world):
    sync = world.app.opened.sync
    assert sync.activity == "reading the vault for the first time"
    for number in range(3):
        world.write(f"{number}.md", "words")
    stated = []
    world.run(progress=lambda *_: stated.append(sync.activity))
    assert "indexing 3/3" in stated
    assert sync.activity == ""
