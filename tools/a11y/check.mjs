// Every page below a folder, in light and dark, with pa11y's two runners:
//
//   node check.mjs FOLDER [CHROMIUM [PART…]]
//
// With parts, only the pages whose address holds one of them.
// Faults that stay are listed in faults.json, with their reason. A listed fault that does
// not occur is an error, too.
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import pa11y from "pa11y";
import puppeteer from "puppeteer";

const [folder, chromium = "/usr/bin/chromium", ...parts] = process.argv.slice(2);
const listed = JSON.parse(readFileSync(new URL("faults.json", import.meta.url)));
const views = [
  { scheme: "light", viewport: { width: 1400, height: 900 } },
  { scheme: "dark", viewport: { width: 390, height: 844 } },
];

function pages(root, below = "") {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const name = below ? `${below}/${entry.name}` : entry.name;
    if (entry.isDirectory()) return entry.name === "_static" ? [] : pages(root, name);
    return entry.name.endsWith(".html") ? [name] : [];
  });
}

async function issuesOf(browser, name) {
  const found = new Map();
  const url = pathToFileURL(resolve(folder, name)).href;
  for (const { scheme, viewport } of views) {
    const page = await browser.newPage();
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const { issues } = await pa11y(url, {
      browser, page, viewport, runners: ["axe", "htmlcs"], standard: "WCAG2AA",
      timeout: 120000,
      wait: 800, // until colours have faded from one scheme to the other
    });
    await page.close();
    // What axe could not decide, as the contrast of words on a drawing, is no finding.
    for (const issue of issues.filter((i) => !i.runnerExtras?.needsFurtherReview))
      found.set(`${issue.code} ${issue.selector}`, { ...issue, scheme });
  }
  return [...found.values()];
}

const browser = await puppeteer.launch(
  { executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const met = new Set();
let errors = 0;
const names = pages(folder).filter((name) => name !== "index.html" &&
  (!parts.length || parts.some((part) => name.includes(part))));
for (const name of names)
  for (const { runner, code, context, selector, message, scheme } of
    await issuesOf(browser, name)) {
    const entry = listed.find((l) => l.rule === code &&
      l.page === name && `${selector} ${context}`.includes(l.in));
    if (entry) met.add(entry);
    else {
      errors++;
      console.error(`${name} (${scheme}, ${runner}): ${code}\n  ${message}\n  ${selector}` +
        `\n  ${context}`);
    }
  }
await browser.close();
for (const entry of listed.filter((l) => !parts.length || names.includes(l.page)))
  if (!met.has(entry)) {
    errors++;
    console.error(`listed, and not found: ${entry.rule} on ${entry.page} in ${entry.in}`);
  }
console.log(`${names.length} pages, ${errors} errors, ${met.size} listed faults`);
process.exit(errors ? 1 : 0);
