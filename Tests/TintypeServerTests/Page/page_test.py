#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives the web page of `tintype serve` in headless Chromium.

    TINTYPE_PAGE_URL=http://127.0.0.1:8080/ python3 Tests/TintypeServerTests/Page/page_test.py

The server must run with its page. It needs no network: the tests upload their image. Needs Debian's `chromium` and
nothing outside Python's standard library. More variables, all optional:

    TINTYPE_PAGE_SHOTS   a folder for screenshots, wide and narrow, light and dark
    CHROMIUM             the browser's path, by default `chromium`
    IMGPROXY_KEY, IMGPROXY_SALT  the keys of a server that signs, with which the copied programs run

The programs that the page shows run as well: Python if the package `imgproxy` is installed, TypeScript if there
is `node`.
"""

import base64
import fcntl
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import zlib

PAGE = os.environ.get("TINTYPE_PAGE_URL", "")
SHOTS = os.environ.get("TINTYPE_PAGE_SHOTS")
PATIENCE = 20


def png(width, height):
    """Returns a PNG with smooth colours, which every option changes visibly."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes((255 * x // width, 255 * y // height, 160 if (x // 40 + y // 40) % 2 else 60))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")


class Browser:
    """A headless Chromium with one page, driven over the DevTools protocol through a pair of pipes."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tintype-page-")
        # Chromium reads commands from descriptor 3 and writes to descriptor 4.
        commands, self.output = os.pipe()
        self.input, answers = os.pipe()
        commands = fcntl.fcntl(commands, fcntl.F_DUPFD_CLOEXEC, 20)
        answers = fcntl.fcntl(answers, fcntl.F_DUPFD_CLOEXEC, 20)

        def place():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        arguments = [
            os.environ.get("CHROMIUM", "chromium"), "--headless", "--remote-debugging-pipe", "--disable-gpu",
            "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
            f"--user-data-dir={self.folder}",
        ]  # fmt: skip
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.process = subprocess.Popen(
            arguments, preexec_fn=place, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log", "Accessibility":
            self.send(domain + ".enable")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.input, 1 << 16)
            if not data:
                raise EOFError("the browser has ended; can it run here?")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        """Sends a command, and returns its result. Events that arrive meanwhile are recorded."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """Returns the value of an expression in the page, as JSON. Awaits promises."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def wait(self, condition):
        """Waits until an expression is true, and returns its value."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if value := self.run(condition):
                    return value
            except RuntimeError as error:
                # The page may be between two documents.
                if "context" not in str(error).lower() and "null" not in str(error):
                    raise
            if time.monotonic() > deadline:
                status = self.run("document.getElementById('status')?.textContent")
                raise AssertionError(f"the page never had {condition}; its status is: {status}")
            time.sleep(0.02)

    def open(self, address, width=1280, height=900, scheme="light", motion="no-preference"):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.send("Emulation.setEmulatedMedia", features=[{"name": n, "value": v} for n, v in features.items()])
        self.send("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait("location.protocol === 'http:' && document.readyState === 'complete'")

    def press(self, key, text="", modifiers=0):
        code = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, " ": 32, "End": 35}[key]
        both = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **both)
        self.send("Input.dispatchKeyEvent", type="keyUp", **both)

    def click(self, x, y):
        for kind in "mousePressed", "mouseReleased":
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def accessibility(self):
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node.get("ignored")]

    def screenshot(self, name):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        area = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip=area)["data"]
        with open(os.path.join(SHOTS, name), "wb") as file:
            file.write(base64.b64decode(data))


# Finds visible text whose contrast with the colour behind it is below WCAG's level AA.
CONTRAST = r"""(() => {
    const parse = text => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number)
    const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)) }
    const light = color => {
        const [r, g, b] = color.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const behind = element => {
        if (!element) return [255, 255, 255]
        const color = parse(getComputedStyle(element).backgroundColor)
        return (color[3] ?? 1) === 1 ? color : over(color, behind(element.parentElement))
    }
    const low = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement
        if (!walker.currentNode.data.trim() || element.closest("script, style, noscript, option, .unseen")) continue
        if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue
        const style = getComputedStyle(element), back = behind(element), front = over(parse(style.color), back)
        const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05)
        const isLarge = parseFloat(style.fontSize) >= 24
        if (ratio < (isLarge ? 3 : 4.5)) low.push(`${walker.currentNode.data.trim()}: ${ratio.toFixed(2)}`)
    }
    return low
})()"""

CONTROLS = {
    "button", "checkbox", "ColorWell", "combobox", "radio", "slider", "spinbutton", "textbox", "link", "image",
    "form", "region", "group", "radiogroup",
}  # fmt: skip


@unittest.skipUnless(PAGE, "TINTYPE_PAGE_URL is not set")
class PageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.events.clear()

    def tearDown(self):
        """Nothing may go wrong quietly: no exceptions, no violations of the policy, no requests to other origins."""
        for event in self.browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.fail(details.get("exception", {}).get("description") or details["text"])
            if method == "Log.entryAdded" and parameters["entry"]["source"] in ("security", "violation"):
                self.fail(parameters["entry"]["text"])
            if method == "Network.requestWillBeSent":
                self.assertRegex(parameters["request"]["url"], "^(about:|blob:|data:|" + re.escape(PAGE) + ")")

    def set(self, **values):
        """Sets controls as a user does."""
        for name, value in values.items():
            self.browser.run(
                f"""(() => {{
                    const controls = [...document.getElementById("options").elements].filter(c => c.name === "{name}")
                    const control = controls.find(c => c.type !== "radio" || c.value === {json.dumps(value)})
                    if (["checkbox", "radio"].includes(control.type)) control.checked = {json.dumps(value)} !== false
                    else control.value = {json.dumps(value)}
                    control.dispatchEvent(new Event("input", {{ bubbles: true }}))
                    control.dispatchEvent(new Event("change", {{ bubbles: true }}))
                }})()"""
            )

    def text(self, identifier):
        return self.browser.run(f"(e => e.value ?? e.textContent)(document.getElementById('{identifier}'))")

    def await_path(self, *parts):
        """Waits for the image of a path that contains parts, and returns its status line."""
        wanted = " && ".join(f"path.value.includes({json.dumps(part)})" for part in parts)
        return self.browser.wait(
            f"""(() => {{
                const [path, plate, status] = ["path", "plate", "status"].map(id => document.getElementById(id))
                return {wanted or "true"} && plate.ariaBusy === "false" && /×/.test(status.textContent)
                    && status.textContent
            }})()"""
        )

    def upload(self, width=640, height=480):
        """Drops a file on the page, and waits for the result."""
        data = base64.b64encode(png(width, height)).decode()
        self.browser.run(
            f"""(() => {{
                const bytes = Uint8Array.from(atob("{data}"), c => c.charCodeAt(0)), transfer = new DataTransfer()
                transfer.items.add(new File([bytes], "dropped.png", {{ type: "image/png" }}))
                document.getElementById("plate").dispatchEvent(
                    new DragEvent("drop", {{ bubbles: true, cancelable: true, dataTransfer: transfer }}))
            }})()"""
        )
        self.await_path("/plain/upload:///")
        self.browser.wait("/from PNG/.test(document.getElementById('format').textContent)")

    def fetch(self, address):
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return answer.read(), answer.headers

    def test_policy(self):
        """The page's policy allows its own style and script by hash, and a connection to its own origin only."""
        body, headers = self.fetch(PAGE)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn(b"<h1>", body)

    def test_names(self):
        """Every control, image and landmark has a name, and the page has one first heading and its landmarks."""
        self.browser.open(PAGE)
        self.upload()
        self.browser.run("document.querySelectorAll('details').forEach(group => group.open = true)")
        for view in "compare", "beside", "result":
            self.browser.run(f"document.querySelector('[name=view][value={view}]').click()")
            nodes = self.browser.accessibility()
            role = lambda node: node["role"]["value"]
            unnamed = [
                self.browser.send("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
                for node in nodes
                if role(node) in CONTROLS and not node.get("name", {}).get("value", "").strip()
            ]
            # A browser gives `details` the role of a group without a name. Its summary names it.
            self.assertEqual([node["attributes"] for node in unnamed if node["nodeName"] != "DETAILS"], [])
        self.assertGreater(sum(role(node) in CONTROLS for node in nodes), 50)
        levels = [
            next(p["value"]["value"] for p in node["properties"] if p["name"] == "level")
            for node in nodes
            if role(node) == "heading"
        ]
        self.assertEqual(levels.count(1), 1)
        self.assertEqual(set(levels), {1, 2})
        roles = [role(node) for node in nodes]
        for landmark in "banner", "main", "form", "contentinfo", "status":
            self.assertEqual(roles.count(landmark), 1, landmark)
        named = "[...document.querySelectorAll('[id]')].map(e => e.id)"
        names = self.browser.run(named)
        self.assertEqual(len(names), len(set(names)))

    def test_upload(self):
        """A dropped file is shown with its figures, and its address gives the same bytes to other programs."""
        self.browser.open(PAGE)
        self.upload()
        status = self.await_path()
        self.assertRegex(status, r"^640.×.480 \w+, [\d.]+.k?B, from \w+\.$")
        self.assertIn("640 × 480", self.text("dimensions").replace("\u00a0", " "))
        self.assertRegex(self.text("time"), r"ms")
        self.assertRegex(self.text("saved"), r"\d+.%")
        self.set(w="200", f="webp")
        self.assertRegex(self.await_path("/w:200/", "@webp"), r"^200.×.150 WebP")
        body, headers = self.fetch(self.text("address"))
        self.assertEqual(headers["Content-Type"], "image/webp")
        self.assertEqual(body[8:12], b"WEBP")

    def test_upload_limit(self):
        """The page refuses a file over 32 MB without sending it."""
        self.browser.open(PAGE)
        self.browser.run(
            """(() => {
                const transfer = new DataTransfer()
                transfer.items.add(new File([new Uint8Array(32_000_001)], "huge.png", { type: "image/png" }))
                dispatchEvent(new DragEvent("drop", { cancelable: true, dataTransfer: transfer }))
            })()"""
        )
        self.browser.wait("/limit is 32 MB/.test(document.getElementById('status').textContent)")

    def test_options(self):
        """Each control adds its option to the path, and the image has the size that follows."""
        self.browser.open(PAGE)
        self.upload()
        for values, part, size in [
            ({"w": "100"}, "/w:100/", "100×75"),
            ({"w": "100", "h": "100"}, "/w:100/h:100/", "100×75"),
            ({"w": "100", "h": "100", "rt": "fill"}, "/rt:fill/w:100/h:100/", "100×100"),
            ({"w": "100", "h": "100", "rt": "force"}, "/rt:force/", "100×100"),
            ({"w": "1000", "el": True}, "/w:1000/el:1/", "1000×750"),
            ({"w": "100", "dpr": "2"}, "/dpr:2/", "200×150"),
            ({"cw": "0.5"}, "/c:0.5:0/", "320×480"),
            ({"cw": "100", "ch": "50", "g": "soea"}, "/c:100:50/g:soea/", "100×50"),
            ({"rot": "90"}, "/rot:90/", "480×640"),
            ({"fh": True}, "/fl:1:0/", "640×480"),
            ({"bl": "2"}, "/bl:2/", "640×480"),
            ({"sh": "1"}, "/sh:1/", "640×480"),
            ({"pix": "8"}, "/pix:8/", "640×480"),
            ({"pd": "10, 20"}, "/pd:10:20/", "680×500"),
            ({"bg": True, "bgc": "#ff0000"}, "/bg:ff0000/", "640×480"),
            ({"f": "jpg", "q": "40"}, "/q:40/", "640×480"),
            ({"f": "jpg", "mb": "5000"}, "/mb:5000/", "640×480"),
            ({"f": "gif"}, "@gif", "640×480"),
            ({"more": "w:64"}, "/w:64/", "64×48"),
        ]:
            with self.subTest(part):
                self.browser.run("document.getElementById('restore').click()")
                self.set(**values)
                self.assertEqual(self.await_path(part).replace("\u00a0", "").split()[0], size)
        self.browser.run("document.getElementById('restore').click()")
        self.browser.wait("/^.plain/.test(document.getElementById('path').value)")

    def test_focus(self):
        """A click on the original sets the focus point, also if the result is rotated and flipped."""
        self.browser.open(PAGE)
        self.upload()
        self.set(w="100", h="100", rt="fill", g="fp")
        self.browser.wait("document.getElementById('plate').dataset.view === 'beside'")
        self.await_path("/g:fp:0.5:0.5/")
        for rotation, flip, expected in [
            ("0", False, "0.75:0.25"),
            ("90", False, "0.75:0.75"),
            ("90", True, "0.25:0.75"),
            ("180", False, "0.25:0.75"),
        ]:
            self.set(rot=rotation, fh=flip)
            box = self.browser.run("document.querySelector('#before img').getBoundingClientRect().toJSON()")
            self.browser.click(box["left"] + 0.75 * box["width"], box["top"] + 0.25 * box["height"])
            self.await_path(f"/g:fp:{expected}/")
            mark = self.browser.run("document.getElementById('mark').style.cssText")
            x, y = (float(share) for share in re.findall(r"([\d.]+)%", mark))
            self.assertAlmostEqual(x, 75, delta=1.1)
            self.assertAlmostEqual(y, 25, delta=1.1)

    def test_newest(self):
        """While options change quickly, the page requests few images, and shows the newest."""
        self.browser.open(PAGE)
        self.upload()
        self.browser.events.clear()
        for width in range(100, 140):
            self.set(w=str(width))
        self.assertRegex(self.await_path("/w:139/"), r"^139")
        requests = [event for event in self.browser.events if event.get("method") == "Network.requestWillBeSent"]
        self.assertLess(len([request for request in requests if "/w:" in request["params"]["request"]["url"]]), 20)

    def test_errors(self):
        """An error is text with its status, in the live region. The next good option replaces it."""
        self.browser.open(PAGE)
        self.upload()
        self.set(more="no-such-option:1")
        self.browser.wait("/^404: .*/.test(document.getElementById('status').textContent)")
        self.assertEqual(self.browser.run("document.getElementById('status').className"), "error")
        self.set(more="")
        self.await_path()
        self.set(w="-1")
        self.browser.wait("/^Width: /.test(document.getElementById('status').textContent)")
        self.set(w="", url="local:///no/such/image.jpg")
        self.browser.wait("/^(403|404): /.test(document.getElementById('status').textContent)")

    def test_escapes(self):
        """A source keeps its characters whatever they mean in URLs, shells and HTML."""
        self.browser.open(PAGE)
        for source, escaped in [
            ("local:///a b?c@d%20.jpg", "local:///a%20b%3Fc%40d%2520.jpg"),
            ("https://example.com/é'\"<&>#.jpg", "https://example.com/%C3%A9%27%22%3C&%3E%23.jpg"),
            ("https://example.com:8080/a:/b.jpg", "https://example.com:8080/a%3A/b.jpg"),
            ("s3://bucket/a/../b", "s3:%2F%2Fbucket%2Fa%2F..%2Fb"),
        ]:
            self.set(url=source)
            self.browser.wait(f"document.getElementById('path').value === {json.dumps('/plain/' + escaped)}")
            self.assertTrue(self.text("address").endswith("/plain/" + escaped))

    def test_keyboard(self):
        """The keyboard reaches every control in order, the focus is visible, and the slider moves."""
        self.browser.open(PAGE)
        self.upload()
        self.browser.run("document.querySelectorAll('details').forEach(group => group.open = true)")
        self.browser.run("document.getElementById('url').focus()")
        reached, unseen = [], []
        for _ in range(80):
            name, outline = self.browser.run(
                """(e => [e.id || e.name || e.dataset.copy || e.tagName,
                    [e, e.parentElement, e.nextElementSibling]
                        .some(x => x && getComputedStyle(x).outlineStyle === "solid")])
                    (document.activeElement)"""
            )
            if name == "BODY":
                break
            reached.append(name)
            if not outline:
                unseen.append(name)
            self.browser.press("Tab")
        self.assertEqual(unseen, [])
        expected = (
            "url file view split w h rt dpr el f mb q cw ch g fx fy rot fh fv bl sh pix pd bg bgc t pr more "
            "path address language code"
        )
        self.assertEqual(set(expected.split()) - set(reached), set())
        self.browser.run("document.getElementById('split').focus()")
        self.browser.press("ArrowRight")
        self.assertRegex(self.browser.run("document.getElementById('plate').style.cssText"), r"--split: 5[1-9]")
        self.browser.run("document.querySelector('[name=view]:checked').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.browser.run("document.getElementById('plate').dataset.view"), "beside")

    def test_code(self):
        """The programs that the page shows give the image that the page shows."""
        self.browser.open(PAGE)
        self.upload()
        for values, parts in [
            ({"w": "120", "h": "90", "rt": "fill", "g": "nowe", "el": True, "f": "webp"}, ["/g:nowe/", "@webp"]),
            ({"g": "fp", "bl": "1.5", "rot": "90", "f": "png"}, ["/g:fp:0.5:0.5/", "/rot:90/"]),
            ({"more": "rs:fill:80:60", "f": "jpg"}, ["/rs:fill:80:60/"]),
        ]:
            self.browser.run("document.getElementById('restore').click()")
            self.set(**values)
            self.await_path(*parts)
            expected, _ = self.fetch(self.text("address"))
            programs = {}
            for language in "shell", "python", "typescript":
                self.browser.run(f"document.querySelector('[name=language][value={language}]').click()")
                programs[language] = self.text("code")
            url = re.search(r"'(http[^']+)'", programs["shell"])[1]
            self.assertEqual(url, self.text("address"))
            self.assertIn(f'<img src="{url}"', programs["shell"])
            if importlib.util.find_spec("imgproxy"):
                python = [sys.executable, "-c", programs["python"]]
                found = subprocess.run(python, capture_output=True, text=True, check=True).stdout.strip()
                self.assertEqual(self.fetch(found)[0], expected)
            if shutil.which("node"):
                # Node.js before version 22 does not know types.
                script = re.sub(r" as string\[\]|: string|(?<=\])!", "", programs["typescript"])
                script += "\nprocess.stdout.write(Buffer.from(image));\n"
                node = ["node", "--input-type=module", "-e", script]
                self.assertEqual(subprocess.run(node, capture_output=True, check=True).stdout, expected)

    def test_copying(self):
        """The button copies the complete address to the clipboard."""
        self.browser.open(PAGE)
        self.upload()
        self.browser.run("navigator.clipboard.writeText = async text => window.copied = text")
        self.browser.run("document.querySelector('[data-copy=address]').click()")
        self.browser.wait("window.copied === document.getElementById('address').value")
        self.browser.wait("document.querySelector('[data-copy=address]').textContent === 'Copied'")

    def test_reloading(self):
        """The page's address keeps the options."""
        self.browser.open(PAGE)
        self.upload()
        self.set(w="77", bl="3", g="so", fh=True)
        self.await_path("/w:77/", "/bl:3/")
        path = self.text("path")
        self.browser.send("Page.reload")
        self.browser.wait(f"document.getElementById('path')?.value === {json.dumps(path)}")
        self.await_path("/w:77/")
        self.assertEqual(self.browser.run("document.querySelector('[name=g]:checked').value"), "so")

    def test_without_scripts(self):
        """Without JavaScript the form leads to the image."""
        self.browser.open(PAGE)
        self.upload()
        source = self.text("url")
        self.browser.send("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.open(PAGE, width=360)
            visible = "e => e.checkVisibility()"
            self.assertTrue(self.browser.run(f"({visible})(document.querySelector('noscript p'))"))
            names = self.browser.run(
                f"[...document.getElementById('options').elements].filter({visible}).map(e => e.name).filter(Boolean)"
            )
            self.assertEqual(names, ["url", "w", "h", "rt", "dpr", "el", "f", "mb", "q"])
            if SHOTS:
                self.browser.screenshot("360-without-scripts.png")
            for name, value in {"w": "90", "url": source}.items():
                self.browser.run(f"document.querySelector('[name={name}]').focus()")
                self.browser.send("Input.insertText", text=value)
            self.browser.press("Enter", text="\r")
            self.browser.wait("document.contentType.startsWith('image/') && document.readyState === 'complete'")
            self.assertIn("/w:90/", self.browser.run("location.href"))
            self.assertEqual(self.browser.run("document.querySelector('img').naturalWidth"), 90)
        finally:
            self.browser.send("Emulation.setScriptExecutionDisabled", value=False)

    def test_appearance(self):
        """Wide and narrow, light and dark: nothing overflows sideways, and text has the contrast of level AA."""
        for scheme in "light", "dark":
            for width, height in (1280, 900), (360, 740):
                with self.subTest(scheme=scheme, width=width):
                    self.browser.open(PAGE, width, height, scheme, motion="reduce")
                    self.assertEqual(self.browser.run(CONTRAST), [])
                    if SHOTS:
                        self.browser.screenshot(f"{width}-{scheme}-empty.png")
                    self.upload()
                    self.browser.run("document.querySelectorAll('details').forEach(group => group.open = true)")
                    self.assertEqual(self.browser.run(CONTRAST), [])
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.run("document.getAnimations().length"), 0)
                    if SHOTS:
                        self.browser.screenshot(f"{width}-{scheme}.png")


if __name__ == "__main__":
    if not PAGE:
        sys.exit("page_test: TINTYPE_PAGE_URL is not set; see the comment at the top of this file")
    unittest.main()
