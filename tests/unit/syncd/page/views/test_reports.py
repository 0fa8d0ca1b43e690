"""syncd/page/views/reports.py: messages about outcomes, and comparisons that are cut."""

from __future__ import annotations

from types import SimpleNamespace

from syncd.page.views.reports import carry_out, describe_answers, undo


def test_each_outcome_has_a_message():
    carried = [{"done": True, "said": "2 captures changed"}, {"done": False, "said": "Search has changed"}]
    assert describe_answers({"carried": carried, "dismissed": 1, "problem": "Git is busy"}) == [
        "Done: 2 captures changed.",
        "Not done: Search has changed.",
        "Dismissed 1 proposal; Memex does not ask again.",
        "Not done yet: Git is busy. Memex tries again by itself.",
    ]


def test_without_an_outcome_that_is_said():
    assert describe_answers({"carried": [], "dismissed": 0, "problem": ""}) == ["Nothing was carried out."]


class Sent:
    """A form that a browser sent from a page of proposals; each answer of the daemon is `answer`."""

    def __init__(self, answer, **fields):
        self.answer, self._fields, self.session = answer, fields, SimpleNamespace(messages=[])

    def ask(self, _operation, **_arguments):
        return self.answer

    def query(self, _name):
        return ""

    def field(self, name):
        return self._fields.get(name, "")

    def fields(self, name):
        return [self.field(name)] if self.field(name) else []

    def redirect(self, path, _message=""):
        return path


def test_a_decision_leads_back_to_its_page_of_proposals():
    done = {"carried": [{"key": "k", "done": True, "said": "x"}], "dismissed": 0, "problem": ""}
    assert carry_out(Sent(done, tick="k", page="3")) == "/reports?page=3&done=k"
    assert carry_out(Sent(done, page="3")) == "/reports?page=3"
    assert undo(Sent({"changed": []}, key="k", page="3")) == "/reports?page=3"
    assert undo(Sent({"changed": []}, key="k", page="1")) == "/reports"
