from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeadLetter(_message.Message):
    __slots__ = ("letter_id", "source_topic", "source_partition", "source_offset", "error", "attempts", "first_failed_at", "key", "value_bytes", "redriven", "group")
    LETTER_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FAILED_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    letter_id: str
    source_topic: str
    source_partition: int
    source_offset: int
    error: str
    attempts: int
    first_failed_at: _timestamp_pb2.Timestamp
    key: str
    value_bytes: int
    redriven: bool
    group: str
    def __init__(self, letter_id: _Optional[str] = ..., source_topic: _Optional[str] = ..., source_partition: _Optional[int] = ..., source_offset: _Optional[int] = ..., error: _Optional[str] = ..., attempts: _Optional[int] = ..., first_failed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[str] = ..., value_bytes: _Optional[int] = ..., redriven: bool = ..., group: _Optional[str] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("source_topic", "include_redriven", "page_size", "page_token")
    SOURCE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    source_topic: str
    include_redriven: bool
    page_size: int
    page_token: str
    def __init__(self, source_topic: _Optional[str] = ..., include_redriven: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("letters", "next_page_token")
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    next_page_token: str
    def __init__(self, letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetDeadLetterRequest(_message.Message):
    __slots__ = ("letter_id",)
    LETTER_ID_FIELD_NUMBER: _ClassVar[int]
    letter_id: str
    def __init__(self, letter_id: _Optional[str] = ...) -> None: ...

class GetDeadLetterResponse(_message.Message):
    __slots__ = ("letter", "value", "headers")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    LETTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    letter: DeadLetter
    value: bytes
    headers: _containers.ScalarMap[str, bytes]
    def __init__(self, letter: _Optional[_Union[DeadLetter, _Mapping]] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class RedriveDeadLetterRequest(_message.Message):
    __slots__ = ("letter_id",)
    LETTER_ID_FIELD_NUMBER: _ClassVar[int]
    letter_id: str
    def __init__(self, letter_id: _Optional[str] = ...) -> None: ...

class RedriveDeadLetterResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
