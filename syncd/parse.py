import hashlib
from index.model import Document, Block
from syncd.note import decode, properties, split
from syncd.place import place
from pathlib import PurePosixPath
def parse(raw, path, *, mtime_ms, inbox="Captures"):
    text=decode(raw); front,body=split(text)
    try: p=properties(front)
    except ValueError: p={}
    at=place(path,inbox)
    content=body.encode("utf-8","surrogateescape").decode("utf-8","replace")
    blocks=[];pos=0
    for para in content.split("\n\n"):
        if para.strip():
            s=pos+len(para)-len(para.lstrip()); blocks.append(Block("paragraph",s,s+len(para.strip()),()))
        pos+=len(para)+2
    tags=p.get("tags") or []
    return Document(path=path,scope=at.scope,workspace=at.workspace,namespace=at.namespace,claimed_id=p.get("id"),type=at.type,title=p.get("title") or PurePosixPath(path).stem,content=content,text=content,digest=hashlib.sha256(raw).hexdigest(),content_hash=hashlib.sha256(content.encode()).hexdigest(),collection=p.get("collection") or "documents",tags=tuple(tags) if isinstance(tags,list) else (),aliases=(),summary=p.get("summary"),source=p.get("source"),metadata={},created_at=_t(p.get('created_at')) or mtime_ms,updated_at=None,version=1,blocks=tuple(blocks))

from datetime import datetime
def _t(x):
    try: return int(datetime.fromisoformat(x).timestamp()*1000)
    except Exception: return None
