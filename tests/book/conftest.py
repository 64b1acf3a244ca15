"""A page in each of two browsers, for the tests of the pages that `make html` built."""

import os

import pytest
from firefox import Firefox, find_firefox

from browser import Browser, find_chromium

BROWSERS = {"Chromium": (Browser, find_chromium()),
            "Firefox": (Firefox, find_firefox())}


@pytest.fixture(scope="module", params=BROWSERS)
def page(request):
    kind, program = BROWSERS[request.param]
    if not os.environ.get("D2L_EXT_HTML") or not program:
        pytest.skip(f"no pages or no {request.param}: `make html` builds them")
    with kind(program, deadline=300) as browser:
        yield browser.page()
