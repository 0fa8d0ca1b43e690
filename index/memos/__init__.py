"""Memo queries list the memos of a namespace, filter them by metadata and follow the relations between them."""
