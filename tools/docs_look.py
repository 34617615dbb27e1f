"""What a browser makes of the documentation site: pictures of its pages, and pages that are wider
than the window. Needs Chromium (Debian package chromium)."""

import json
import os
import shutil
import subprocess
import tempfile

import docs_check

WIDTHS = (1280, 390)  # a desktop, a phone
HEIGHT = 2400
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
# Loads each page into a frame of each width, and writes the pages that are wider.
MEASURE = """<pre id="out"></pre><script>
const out = document.getElementById("out");
async function measure() {
  for (const page of PAGES) for (const width of WIDTHS) {
    const frame = document.createElement("iframe");
    frame.style.width = width + "px";
    frame.src = page;
    document.body.append(frame);
    await new Promise(done => frame.onload = done);
    const wide = frame.contentDocument.documentElement.scrollWidth;
    if (wide > width) out.textContent += `${page}: ${wide} pixels wide on ${width}\\n`;
    frame.remove();
  }
  out.textContent += "measured\\n";
}
measure();
</script>"""


def shown_pages(site):
    """All pages but those of Doxygen, of which a few are looked at."""
    samples = ("api/index.html", "api/classflugs_1_1Transaction.html",
               "api/structflugs_1_1OpenOptions.html")
    return [page for page in docs_check.pages(site)
            if not page.startswith("api/") or page in samples]


def chromium(*arguments):
    return subprocess.run([*CHROMIUM, *arguments], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL).stdout


def too_wide(site):
    """Pages that would scroll sideways as a whole."""
    if shutil.which(CHROMIUM[0]) is None:
        print("tools/docs: without chromium the widths of pages are not measured")
        return
    text = MEASURE.replace("PAGES", json.dumps(shown_pages(site)))
    text = text.replace("WIDTHS", json.dumps(WIDTHS))
    with tempfile.TemporaryDirectory() as profile, \
            tempfile.NamedTemporaryFile("w", dir=site, suffix=".html") as page:
        page.write(text)
        page.flush()
        # A page from a file may look into frames only with these.
        found = chromium("--allow-file-access-from-files", "--disable-web-security",
                         f"--user-data-dir={profile}", "--virtual-time-budget=300000",
                         "--dump-dom", "file://" + page.name)
    lines = found.partition('<pre id="out">')[2].partition("</pre>")[0].splitlines()
    if not lines or lines.pop() != "measured":
        yield "Chromium has not measured all pages"
    yield from lines


def draw(site, directory):
    """Draws the upper part of each page; takes minutes."""
    os.makedirs(directory, exist_ok=True)
    for page in shown_pages(site):
        for width in WIDTHS:
            name = f"{page.removesuffix('.html').replace('/', '-')}-{width}.png"
            chromium(f"--window-size={width},{HEIGHT}",
                     f"--screenshot={os.path.join(directory, name)}",
                     "file://" + os.path.join(site, page))
