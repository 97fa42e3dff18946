"""The kinds of fields in documents, with what their published schemas say of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal


class Says:
    """What a field is, in its published schema; with whatever else the schema says of it."""

    def __init__(self, words: str, **more: int) -> None:
        self._says = {"description": words, **more}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Asked for by the library that makes schemas, which is not needed to make documents."""
        return {**handler(schema), **self._says}


State = Literal["waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead"]
IdText = Annotated[str, Says("A task's id.", minLength=32, maxLength=32)]
ProofText = Annotated[str, Says("To be given back with whatever is asked for this claim: shows that"
                                " it was granted. Empty where a cluster of an earlier release was not upgraded.")]
TokenText = Annotated[str, Says("A fencing token: decimal text, for it may need more bits than a"
                                " JSON number keeps.")]
IsCancelled = Annotated[bool, Says("Nobody wants the task done any more: stop, and release the"
                                   " claim, though its lease runs on.")]
Text = Annotated[str, Says("Only there when the bytes are UTF-8.")]
Function = Annotated[str | None, Says("The function that the payload calls; null when it is no call.")]
CallText = Annotated[str | None, Says("The call as one would write it, cut to 120 characters; null when the"
                                      " payload is no call.")]
ResultType = Annotated[Literal["none", "bytes", "text", "json"], Says(
    "What came of it: nothing, bytes or text as they are, or another value, of which `result` is the JSON.")]
Value = Annotated[Any, Says("What came of it as JSON; null for nothing and for bytes. Times are in ISO 8601, and"
                            " like numbers beyond JSON's text; bytes inside are base64.")]
