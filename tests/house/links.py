"""Every function of ng.h has its page and its man page, and no link of a page, generated or written, is dead."""
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from house import ROOT, Verdict

import api               # below bindings/, which house puts in reach
import reference_pages


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.open, self.faults = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta",):
            self.open.append(tag)
        self.targets += [value for name, value in attributes if name == "href"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")


def anchors(text):
    """What headings of a page are called in links to them."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)", plain, re.M)}


def check_reference(verdict, folder):
    written = reference_pages.write_all(folder)
    names = {function.name for function in api.read_api().functions}
    surplus = set(written.summaries) - names | set(written.summaries) & set(written.words)
    verdict.check(not surplus, f"docs/summaries.txt: no functions without a row of ops.def: {', '.join(sorted(surplus))}")
    index = (folder / "reference.html").read_text()
    for name in sorted(names):
        page, manual = folder / "reference" / f"{name}.html", folder / "man3" / f"{name}.3"
        verdict.check(page.is_file() and f"reference/{name}.html" in index, f"{name} has no page that the index leads to")
        text = manual.read_text() if manual.is_file() else ""
        verdict.check(re.search(rf"\.SH NAME\n{name} \\- \S.*\S\n\.SH SYNOPSIS\n(.*\n)+", text) and f"{name}(" in text, f"{name} has no man page")
        for other in re.findall(r"(ng_\w+)\(3\)", text):
            verdict.check(other in names, f"{manual.name}: there is no page {other}(3)")
    for page in sorted(folder.rglob("*.html")):
        links = Links()
        links.feed(page.read_text())
        dead = [target for target in links.targets if not (page.parent / target).is_file()]
        verdict.check(not dead and not links.faults and not links.open, f"{page.name}: dead links {dead}, faults {links.faults + links.open}")


def check_pages(verdict):
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for page in sorted(pages):
        text = page.read_text()
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            verdict.check(there.exists(), f"{page.relative_to(ROOT)}: {target} leads nowhere")
            if anchor and there.is_file():
                verdict.check(anchor in anchors(there.read_text()), f"{page.relative_to(ROOT)}: {target}: no such heading")
        for path in re.findall(r"`((?:jit|lib|include|bindings|tests|docs|examples|kernels)/[\w./]+)`", prose):
            if not re.search(r"NAME", path):
                verdict.check((ROOT / path).exists() or Path(path).name == "NAME", f"{page.relative_to(ROOT)}: there is no {path}")


def main():
    verdict = Verdict()
    with tempfile.TemporaryDirectory() as folder:
        check_reference(verdict, Path(folder))
    check_pages(verdict)
    verdict.close()


if __name__ == "__main__":
    main()
