"""syncd/consolidation/analysis/topic_groups.py: the label of a group is what its captures share, and no secret."""

import numpy as np
import pytest

from index.encoders.word_frequency import word_ranks
from index.model import DocumentOverview
from index.search import vector_similarity
from syncd.consolidation.analysis.topic_groups import find_groups
from syncd.graph import similar_nodes
from tests.support.sample_secrets import SECRETS


def capture(id, title):
    return DocumentOverview(id, id, f"Captures/default/{id}.md", title, "note", (), 0, None, "")


def label(title, text):
    """Return the label of a group of three captures with this text, among captures about other things."""
    captures = [capture(str(n), title if n < 3 else f"Other {n}") for n in range(12)]
    rows = np.eye(12, 12, dtype=np.float32)
    rows[:3] = rows[0]
    part = similar_nodes.make_group(list(range(12)), rows)
    near = vector_similarity.nearest(part.matrix, vector_similarity.MUTUAL, part.threshold)
    groups, _ = find_groups(captures, part, near, lambda asked: dict.fromkeys(asked, text), word_ranks(), limit=5)
    (group,) = groups
    return group.label


def test_a_label_is_what_the_captures_share():
    assert "nimbus" in label("Deployment", "The Nimbus cluster deploys on Monday.")


@pytest.mark.parametrize("around", ["{}", "`{}`", "{}\u200b"])
def test_no_label_holds_a_secret(around):
    secret = around.format(SECRETS["github-token"])
    for shown in (label("Deployment", f"Nimbus uses {secret} now."), label(f"Nimbus {secret}", "It deploys.")):
        assert "nimbus" in shown
        assert SECRETS["github-token"][4:20].lower() not in shown.lower()
