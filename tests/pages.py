"""A page of HTML as tests read it."""

from html.parser import HTMLParser

VOID = {"meta", "img", "link", "br", "hr"}


class Read(HTMLParser):
    """A page that is well formed: its texts by tag, pictures and cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.texts, self.images, self.labels = [], {}, [], set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert tag not in ("script", "link")
        if tag == "img":
            self.images.append(given)
        if "data-label" in given:
            self.labels.add(given["data-label"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(" ".join(data.split()))

    def said(self, tag):
        return " ".join(self.texts.get(tag, []))
