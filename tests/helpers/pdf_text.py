"""The words on the pages of a PDF that Chromium printed."""

import re

import pikepdf


def texts(pdf):
    """The text of each page, a line for each piece that stands by itself."""
    return [_text(page) for page in pdf.pages]


def _text(page):
    fonts = {name: _letters(font) for name, font in page.obj.Resources.Font.items()}
    words, letters = [], {}
    for operands, operator in pikepdf.parse_content_stream(page):
        if str(operator) == "Tf":
            letters = fonts[str(operands[0])]
        elif str(operator) in ("Tj", "TJ"):
            parts = operands[0] if str(operator) == "TJ" else operands
            for part in parts:
                if isinstance(part, pikepdf.String):
                    raw = bytes(part)
                    pairs = (raw[i : i + 2].hex() for i in range(0, len(raw), 2))
                    words.append("".join(letters.get(pair, "?") for pair in pairs))
        elif str(operator) in ("Tm", "ET") or str(operator) == "Td" and operands[1]:
            words.append("\n")
    return re.sub(r"\s*\n\s*", "\n", "".join(words)).strip()


def _letters(font):
    """{code: letter} of a font, by its own table."""
    table = font.ToUnicode.read_bytes().decode("latin-1")
    found = {}
    for block in re.findall(r"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        for code, letter in re.findall(r"<(\w+)>\s*<(\w+)>", block):
            found[code.lower()] = _utf16(letter)
    for block in re.findall(r"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for first, last, letter in re.findall(r"<(\w+)>\s*<(\w+)>\s*<(\w+)>", block):
            for step in range(int(last, 16) - int(first, 16) + 1):
                found[f"{int(first, 16) + step:04x}"] = chr(int(letter, 16) + step)
    return found


def _utf16(digits):
    return bytes.fromhex(digits).decode("utf-16-be")
