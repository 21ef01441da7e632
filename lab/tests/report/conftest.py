"""The text of a page, which the tests of the report share."""

import pytest
from shown import chain, six_panels, write


@pytest.fixture(scope="session")
def text() -> str:
    return write([six_panels(), chain()])
