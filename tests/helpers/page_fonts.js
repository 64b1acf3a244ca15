// Run before a page's own scripts: what is not set in the book's own font is set in
// `faces`, a list of [family, weight, base64 of the file]. All words have the widths that
// the files hold, whatever fonts the machine has and however it rounds.
(faces) => {
  for (const [family, weight, data] of faces) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    document.fonts.add(new FontFace(family, bytes, { weight }));
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    body, body * { text-rendering: geometricPrecision !important; }
    .d2l-figure, .d2l-figure * { font-family: measured-sans !important; }
    body :is(pre, code, kbd, samp), body :is(pre, code, kbd, samp) *
      { font-family: measured-mono !important; }`);
  document.adoptedStyleSheets = [sheet];
}
