"""HTML that cannot be written unescaped: text is escaped, and only what :func:`tag` made is not."""

from __future__ import annotations

from html import escape

VOID = {"img", "link", "meta", "source"}
"""Elements that hold nothing."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *inside: str | None, **attributes: str | int | None) -> Html:
    """An element; what is inside is escaped unless it is an element itself, and None is left out.

    An attribute loses a last underscore, and others become hyphens.

    Example:
        >>> from gvf.report.markup import tag
        >>> tag("p", tag("b", "n < 3"), class_="small", data_label="runs & seeds")
        '<p class="small" data-label="runs &amp; seeds"><b>n &lt; 3</b></p>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    text = "".join(
        part if isinstance(part, Html) else escape(part, quote=False)
        for part in inside
        if part is not None
    )
    return Html(f"<{name}{said}>" if name in VOID else f"<{name}{said}>{text}</{name}>")
