"""Memo operations save, search and delete the memos of a namespace and the relations between them."""
