"""What a request may give for a fencing token: numbers that no reader of JSON rounds, and text."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from skuld_py.gateway.values import Token
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.verbs.options import SAFE_MAX

TOKENS: TypeAdapter[int] = TypeAdapter(Token)


@pytest.mark.parametrize("given", [FIRST_TOKEN, SAFE_MAX, str(FIRST_TOKEN), str(SAFE_MAX + 1), str(U63_MAX)])
def test_a_token_is_a_number_of_53_bits_or_text_of_63(given: Any) -> None:
    assert TOKENS.validate_python(given) == int(given)


@pytest.mark.parametrize("given", [FIRST_TOKEN - 1, SAFE_MAX + 1, U63_MAX, str(FIRST_TOKEN - 1), str(U63_MAX + 1),
                                   f"0{FIRST_TOKEN}", f" {FIRST_TOKEN}", float(FIRST_TOKEN), True, None])
def test_anything_else_is_no_token(given: Any) -> None:
    with pytest.raises(ValidationError, match="is not a fencing token"):
        TOKENS.validate_python(given)
