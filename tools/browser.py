"""A headless Chromium, driven through a pipe.

It speaks the Chrome DevTools Protocol over two file descriptors: no port is opened,
no driver is needed, and the browser ends with the pipe. No name is resolved, so that
a page that asks for something outside is caught and nothing leaves the machine.
"""

import base64
import json
import os
import re
import selectors
import shutil
import subprocess
import time
from contextlib import suppress

from pslaunch.temporary import Folder

#: Names of Chromium and its kin, which .ci/run looks for as well.
PROGRAMS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
)
_FLAGS = (
    "--headless",
    "--no-sandbox",  # a container's root has none; only our own pages are opened
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
#: Chromium reads orders from descriptor 3 and answers on 4.
_SHELL = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'


class BrowserError(Exception):
    """The browser did not answer, or did not do what it was told."""


def find_chromium():
    """Return the path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """A running Chromium. `close` ends it and deletes its profile."""

    def __init__(self, program, deadline=60):
        self._home = Folder("d2l_ext-browser-")
        self._process = subprocess.Popen(
            ["sh", "-c", _SHELL, "sh", program, *_FLAGS]
            + [f"--user-data-dir={self._home.name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers, self._events = {}, {}
        self._buffer, self._last, self._deadline = b"", 0, deadline
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._process.stdout, selectors.EVENT_READ)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        with suppress(BrokenPipeError):  # it has ended, and left an order unread
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._ready.close()
        self._process.stdout.close()
        self._home.cleanup()

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        return Page(self, attached["sessionId"])

    def call(self, method, session=None, **params):
        """Send a command to the browser, or the page `session`; return the answer."""
        self._last += 1
        order = {"id": self._last, "method": method, "params": params}
        if session:
            order["sessionId"] = session
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\0")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise BrowserError(f"the browser ended before {method}") from None
        answer = self.wait(lambda: self._answers.pop(order["id"], None), method)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def events(self, session):
        """Return the events of a page so far: a list that grows."""
        return self._events.setdefault(session, [])

    def wait(self, condition, what):
        """Read until `condition()` is true; return its value."""
        end = time.monotonic() + self._deadline
        while not (value := condition()):
            if not self._ready.select(max(0, end - time.monotonic())):
                raise BrowserError(f"{what} did not end within {self._deadline} s")
            read = os.read(self._process.stdout.fileno(), 1 << 20)
            if not read:
                raise BrowserError(f"the browser ended during {what}")
            *messages, self._buffer = (self._buffer + read).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                else:
                    self.events(message.get("sessionId")).append(message)
        return value


class Page:
    """One tab. `open` begins its record of requests and messages anew."""

    def __init__(self, browser, session):
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def _said(self, method):
        events = self._browser.events(self._session)
        return [e["params"] for e in events if e["method"] == method]

    def open(self, url):
        """Load `url`; return when its resources and its mathematics have loaded."""
        self._browser.events(self._session).clear()
        answer = self._call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        self._browser.wait(lambda: self._said("Page.loadEventFired"), f"loading {url}")
        self.evaluate("window.MathJax?.startup?.promise.then(() => 0)")

    def before(self, script):
        """Run `script` in every page from now on, before the page's own scripts."""
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def evaluate(self, expression):
        """Return the value of a JavaScript expression; if it is a promise, its resolved
        value.

        If the page navigates meanwhile, the new page evaluates the expression.
        """
        what = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        for _ in range(20):
            try:
                answer = self._call("Runtime.evaluate", **what)
                break
            except BrowserError as error:
                if not re.search("navigated|context", str(error)):
                    raise
                time.sleep(0.05)
        else:
            raise BrowserError(f"the page navigated 20 times: {expression}")
        if "exceptionDetails" in answer:
            raise BrowserError(_thrown(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def resize(self, width, height=900):
        """Show the page in a window of this size, in CSS pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def press(self, key):
        """Press and release Tab, Enter, Escape, or the left or right arrow."""
        code, text = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""),
                      "ArrowLeft": (37, ""), "ArrowRight": (39, "")}[key]
        what = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
        self._call("Input.dispatchKeyEvent", type="keyDown", **what)
        self._call("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, words):
        """Enter words where the focus is."""
        self._call("Input.insertText", text=words)

    def prefer(self, scheme, medium=""):
        """Emulate a reader who prefers `light` or `dark`; `medium`: such as `print`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", media=medium, features=[feature])

    def until(self, expression, seconds=10):
        """Wait until a JavaScript expression is true; return its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise BrowserError(f"not true within {seconds} s: {expression}")
            time.sleep(0.02)
        return value

    def close(self):
        """Give the tab's memory back."""
        self._call("Page.close")

    def pdf(self, **options):
        """Return the page on paper, as `Page.printToPDF` does it: a stream of bytes."""
        stream = self._call("Page.printToPDF", transferMode="ReturnAsStream", **options)
        handle, parts, end = stream["stream"], [], False
        while not end:
            part = self._call("IO.read", handle=handle, size=1 << 20)
            parts.append(base64.b64decode(part["data"]))
            end = part["eof"]
        return b"".join(parts)

    def requests(self):
        """Return every address that was asked for."""
        return [e["request"]["url"] for e in self._said("Network.requestWillBeSent")]

    def complaints(self):
        """Return the console's errors and warnings, exceptions, failed loads."""
        thrown = [
            _thrown(e["exceptionDetails"])
            for e in self._said("Runtime.exceptionThrown")
        ]
        called = [
            f"console.{e['type']}: "
            + " ".join(str(a.get("value", a.get("description"))) for a in e["args"])
            for e in self._said("Runtime.consoleAPICalled")
            if e["type"] in ("error", "warning", "assert")
        ]
        logged = [
            f"{e['entry']['text']} {e['entry'].get('url', '')}".strip()
            for e in self._said("Log.entryAdded")
            if e["entry"]["level"] in ("error", "warning")
        ]
        return thrown + called + logged


def _thrown(details):
    return details.get("exception", {}).get("description", details["text"])
