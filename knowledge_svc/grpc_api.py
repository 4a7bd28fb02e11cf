"""protos.knowledge.v1.KnowledgeService over ``KnowledgeService``."""

from __future__ import annotations

from typing import Any

import grpc

from knowledge_svc import documents
from knowledge_svc.documents import Document
from knowledge_svc.library import DOCUMENT_BYTES_MAX
from knowledge_svc.service import KnowledgeService
from protos.knowledge.v1 import knowledge_service_pb2 as pb
from protos.knowledge.v1 import knowledge_service_pb2_grpc as pb_grpc
from shared import paging, proto_codec
from shared.errors import AlreadyExists, NotFound, UserError
from shared.events import Bound
from shared.knowledge import KnowledgeQuery

PASSAGES, PASSAGES_MAX = 4, 50
PAGE, PAGE_MAX = 100, 1000

Context = grpc.aio.ServicerContext[Any, Any]


class KnowledgeServicer(pb_grpc.KnowledgeServiceServicer):
    """Any replica answers any call."""

    def __init__(self, knowledge: KnowledgeService) -> None:
        self._knowledge = knowledge

    async def Retrieve(self, request: pb.RetrieveRequest, context: Context) -> pb.RetrieveResponse:
        limit = paging.size(request.limit, default=PASSAGES, most=PASSAGES_MAX)
        passages = await self._knowledge.retrieve(_query(request.query), limit)
        return pb.RetrieveResponse(
            passages=[
                pb.Passage(document_id=p.document_id, title=p.title, text=p.text, score=p.score) for p in passages
            ]
        )

    async def ListSkills(self, request: pb.ListSkillsRequest, context: Context) -> pb.ListSkillsResponse:
        """A page of the ranking as it is now: while searches run, a skill may be met on two pages or on none."""
        size, begin = paging.size(request.page_size, default=PAGE, most=PAGE_MAX), _rank(paging.key(request.page_token))
        ranked = await self._knowledge.rank(_query(request.query), retracted=request.include_retracted)
        page = ranked[begin : begin + size]
        more = begin + size < len(ranked)
        return pb.ListSkillsResponse(
            skills=[proto_codec.to_message(skill) for skill in page],  # type: ignore[misc]
            next_page_token=paging.token(str(begin + size)) if more else "",
        )

    async def ListDocuments(self, request: pb.ListDocumentsRequest, context: Context) -> pb.ListDocumentsResponse:
        size, last = paging.size(request.page_size, default=PAGE, most=PAGE_MAX), paging.key(request.page_token)
        rest = [document for document in await self._knowledge.documents() if document.id > last]
        page = rest[:size]
        return pb.ListDocumentsResponse(
            documents=[await self._told(document, text=False) for document in page],
            next_page_token=paging.token(page[-1].id) if len(rest) > size else "",
        )

    async def GetDocument(self, request: pb.GetDocumentRequest, context: Context) -> pb.GetDocumentResponse:
        found = next((d for d in await self._knowledge.documents() if d.id == request.document_id), None)
        if found is None:
            raise NotFound(f"no document `{request.document_id}`", where="document_id")
        return pb.GetDocumentResponse(document=await self._told(found, text=True))

    async def PutDocument(self, request: pb.PutDocumentRequest, context: Context) -> pb.PutDocumentResponse:
        if len(request.text.encode()) > DOCUMENT_BYTES_MAX:
            raise UserError(f"is larger than {DOCUMENT_BYTES_MAX >> 20} MiB", where=f"document {request.document_id}")
        document = documents.of_id(request.document_id, request.text)
        if await self._knowledge.shelved(document.id):
            raise AlreadyExists(
                "belongs to the corpus that the service came with, which is read-only",
                where=f"document {document.id}",
                hint="give yours another id",
            )
        own = await self._knowledge.own()
        return pb.PutDocumentResponse(replaced=await own.put(document.id, request.text))

    async def DeleteDocument(self, request: pb.DeleteDocumentRequest, context: Context) -> pb.DeleteDocumentResponse:
        where = f"document {request.document_id}"
        own = await self._knowledge.own()
        if not await own.delete(request.document_id):
            if await self._knowledge.shelved(request.document_id):
                raise UserError("belongs to the corpus that the service came with, which is read-only", where=where)
            raise NotFound("there is none of that id", where=where)
        return pb.DeleteDocumentResponse()

    async def _told(self, document: Document, *, text: bool) -> pb.Document:
        return pb.Document(
            document_id=document.id,
            title=document.title,
            text=document.text if text else "",
            own=await self._knowledge.shelved(document.id) is None,
        )


def add(knowledge: KnowledgeService, server: grpc.aio.Server) -> None:
    """Serve ``knowledge`` on ``server``."""
    pb_grpc.add_KnowledgeServiceServicer_to_server(KnowledgeServicer(knowledge), server)


def _query(message: pb.Query) -> KnowledgeQuery:
    return KnowledgeQuery(
        chip=message.chip,
        language=message.language,
        operator_class=message.operator_class,
        bound=proto_codec.member(Bound, message.bound, "query.bound") or Bound.UNKNOWN,
        error=message.error,
        words=message.words,
    )


def _rank(text: str) -> int:
    """Raises ``UserError`` for a token of another list."""
    if not (text or "0").isdecimal() or len(text) > 9:
        raise UserError("is not one that a page of skills came with", where="page_token", hint="leave it empty")
    return int(text or "0")
