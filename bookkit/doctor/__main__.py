"""The doctor's command line, which prints the findings of `examine`."""

import argparse
import json
import sys

from .report import examine

MARKS = {"ok": " ", "note": "–", "bad": "✗"}
WIDTH = 22


def lines(report):
    """Yield the report as lines of text."""
    for title, findings in report.sections.items():
        yield title
        for finding in findings:
            yield f" {MARKS[finding.state]} {finding.topic:{WIDTH}} {finding.text}"
            if finding.advice:
                yield f"   {'':{WIDTH}} → {finding.advice}"
    yield ""
    yield report.verdict.text
    yield f"Next: {report.verdict.next}"


def main(arguments=None):
    """Print the report; return 0 if the book can run, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m bookkit.doctor",
        description="Say whether the book can run here, on what, and why not on more.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    wanted = parser.parse_args(arguments)
    report = examine()
    if wanted.json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        print("\n".join(lines(report)))
    return 0 if report.verdict.runs else 1


if __name__ == "__main__":
    sys.exit(main())
