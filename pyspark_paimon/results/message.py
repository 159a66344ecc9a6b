"""Base of all values exchanged between table and engine."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from manifest.snapshot.commit_info import check_properties
from paimon_base.plugins import plugin

CommitId: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.#-]{1,200}$")]
"""Name of a commit. It becomes part of file names, so a server rejects other forms."""
CommitProperties: TypeAlias = Annotated[dict[str, str], AfterValidator(check_properties)]
"""The user's properties of a commit."""


class Message(BaseModel):
    """Frozen base class of exchanged values.

    Unknown members raise an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def _repr_html_(self) -> str:
        cards = plugin("page", "cards")
        text: str = cards.or_error(type(self).__name__, lambda: cards.card_of(self))
        return text


class Result(Message):
    """Message that is printed as one sentence.

    Its members have all figures.
    """

    def __str__(self) -> str:
        """Return the sentence."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the sentence after the name of the class."""
        return f"{type(self).__name__}({self})"
