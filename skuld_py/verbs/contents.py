"""How contents stand in documents: bytes beside their text, what tasks returned, and their checkpoints."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from typing_extensions import TypedDict

from skuld_py.verbs.schemas import ResultType, Says, Text, TokenText, Value

if TYPE_CHECKING:
    from skuld_py.model.checkpoint import Checkpoint


class CheckpointDocument(TypedDict):
    """From where a task goes on, and which claim has said so, when, by its holder's clock."""

    token: TokenText
    number: int
    at_ms: int
    size: Annotated[int, Says("Bytes, as stored.")]
    result_type: ResultType
    value: Value
    checkpoint: NotRequired[Text]
    checkpoint_base64: str | None


def text_of(data: bytes) -> str | None:
    """The text, when the bytes are some."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def shown(data: bytes, *, is_one_line: bool = True) -> str:
    """Bytes for a reader: harmless text, or base64 with a mark."""
    from skuld_py.client.json_text import harmless_text

    text = text_of(data)
    if text is None:
        return "base64:" + base64.b64encode(data).decode()
    return harmless_text(text, is_one_line=is_one_line)


def fields_of(name: str, data: bytes | None) -> dict[str, str | None]:
    """The fields of some bytes, or of none."""
    exact = {f"{name}_base64": None if data is None else base64.b64encode(data).decode()}
    text = None if data is None else text_of(data)
    return exact if text is None else {**exact, name: text}


def value_of(value: Any, name: str = "result") -> dict[str, Any]:
    """The fields of what a task returned, or of its checkpoint."""
    from skuld_py.calls.results import shown

    kind, data, plain = shown(value)
    return {"result_type": kind, "value": plain, **fields_of(name, None if value is None else data)}


def checkpoint_of(found: Checkpoint | None) -> CheckpointDocument | None:
    """The document of a checkpoint, or of none."""
    if found is None:
        return None
    return cast(CheckpointDocument, {
        "token": str(found.token), "number": found.number, "at_ms": found.at_ms, "size": len(found.data),
        **value_of(found.value, "checkpoint")})
