"""A headless Firefox, driven by WebDriver BiDi over a port of this machine.

Firefox listens by itself: no driver is needed. What a page asks for outside of this
machine goes to a proxy that is not there, and is noted all the same.
"""

import itertools
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import websocket

from browser import BrowserError
from pslaunch.temporary import Folder

#: Names of Firefox, which .ci/run looks for as well.
PROGRAMS = ("firefox-esr", "firefox")
SETTINGS = {
    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9, "network.proxy.no_proxies_on": "127.0.0.1",
    "network.dns.disabled": True, "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False, "datareporting.policy.firstRunURL": "",
    "datareporting.policy.dataSubmissionEnabled": False,
}
_LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


def find_firefox():
    """The path of Firefox, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Firefox:
    """A running Firefox, with a profile of its own. `close` ends both."""

    def __init__(self, program, deadline=300):
        self._home = Folder("d2l_ext-firefox-")
        home = Path(self._home.name)
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n"
                 for k, v in SETTINGS.items()]
        (home / "user.js").write_text("".join(lines), "utf-8")
        self._said = home / "said"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [program, "--headless", "--no-remote", "--profile", home,
                 "--remote-debugging-port=0"],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self._socket, self._numbers, self.events = None, itertools.count(1), []
        try:
            self._socket = websocket.create_connection(
                f"{self._address(deadline)}/session", timeout=deadline,
                suppress_origin=True, http_no_proxy=["*"])
            self.call("session.new", capabilities={})
            self.call("session.subscribe", events=["network.beforeRequestSent"])
        except BaseException:
            self.close()
            raise

    def _address(self, deadline):
        end = time.monotonic() + deadline
        while not (found := _LISTENS.search(self._said.read_text("utf-8", "replace"))):
            if self._process.poll() is not None or time.monotonic() > end:
                said = self._said.read_text("utf-8", "replace")
                raise BrowserError(f"Firefox does not listen: {said[-500:]}")
            time.sleep(0.05)
        return found[1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        if self._socket:
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def call(self, method, **params):
        """What Firefox answers to a command."""
        number = next(self._numbers)
        order = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(order))
        while True:
            try:
                message = json.loads(self._socket.recv())
            except (websocket.WebSocketException, OSError) as error:
                raise BrowserError(f"{method} did not end: {error}") from error
            if message["type"] == "event":
                self.events.append(message)
            elif message.get("id") == number:
                break
        if message["type"] == "error":
            raise BrowserError(f"{method}: {message['message']}")
        return message["result"]

    def page(self):
        return Page(self, self.call("browsingContext.create", type="tab")["context"])


class Page:
    """One tab, with those methods of `browser.Page` that its tests need."""

    def __init__(self, browser, context):
        self._browser, self._context = browser, context

    def open(self, url):
        """Load `url`; its record of requests begins anew."""
        self._browser.events.clear()
        self._browser.call("browsingContext.navigate", context=self._context, url=url,
                           wait="complete")
        self.evaluate("window.MathJax?.startup?.promise.then(() => 0)")

    def evaluate(self, expression):
        """The value of JavaScript; of a promise, when it is kept."""
        answer = self._browser.call(
            "script.evaluate", expression=expression, awaitPromise=True,
            target={"context": self._context})
        if answer["type"] == "exception":
            raise BrowserError(answer["exceptionDetails"]["text"])
        return _value(answer["result"])

    def resize(self, width, height=900):
        self._browser.call("browsingContext.setViewport", context=self._context,
                           viewport={"width": width, "height": height})

    def press(self, key):
        """Press and release Tab, Enter, Escape or an arrow to the side."""
        value = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c",
                 "ArrowLeft": "\ue012", "ArrowRight": "\ue014"}[key]
        keys = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        self._browser.call("input.performActions", context=self._context,
                           actions=[{"type": "key", "id": "keys", "actions": keys}])

    def type(self, words):
        """Enter words where the focus is."""
        self.evaluate(f"document.execCommand('insertText', false, {json.dumps(words)})")

    def until(self, expression, seconds=10):
        """Wait until a JavaScript expression is true; return its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise BrowserError(f"not true within {seconds} s: {expression}")
            time.sleep(0.05)
        return value

    def requests(self):
        """Every address that was asked for."""
        return [event["params"]["request"]["url"] for event in self._browser.events]


def _value(told):
    """A value of JavaScript, as BiDi tells it, in Python."""
    kind, value = told["type"], told.get("value")
    if kind == "array":
        return [_value(v) for v in value]
    if kind == "object":
        return {key: _value(v) for key, v in value}
    return value
