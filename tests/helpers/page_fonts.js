// Run before a page's own scripts: its words are set in `faces`, a list of [family,
// weight, base64 of the file], with the widths that the files hold, whatever fonts the
// machine has and however it rounds. Icons and mathematics keep their own.
(faces) => {
  for (const [family, weight, data] of faces) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    document.fonts.add(new FontFace(family, bytes, { weight }));
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    body, body *:not([class*="fa-"], mjx-container, mjx-container *)
      { font-family: measured-sans !important;
        text-rendering: geometricPrecision !important; }
    body :is(pre, code, kbd, samp), body :is(pre, code, kbd, samp) *
      { font-family: measured-mono !important; }`);
  document.adoptedStyleSheets = [sheet];
}
