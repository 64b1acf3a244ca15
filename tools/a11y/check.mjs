// Every page below a folder, in light and dark, with pa11y's two runners:
//
//   node check.mjs FOLDER [CHROMIUM [PART…]]
//
// With parts, only the pages whose address holds one of them.
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import pa11y from "pa11y";
import puppeteer from "puppeteer";

const [folder, chromium = "/usr/bin/chromium", ...parts] = process.argv.slice(2);
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
let errors = 0;
const names = pages(folder).filter((name) => name !== "index.html" &&
  (!parts.length || parts.some((part) => name.includes(part))));
for (const name of names)
  for (const { runner, code, context, selector, message, scheme } of
    await issuesOf(browser, name)) {
    errors++;
    console.error(`${name} (${scheme}, ${runner}): ${code}\n  ${message}\n  ${selector}` +
      `\n  ${context}`);
  }
await browser.close();
console.log(`${names.length} pages, ${errors} errors`);
process.exit(errors ? 1 : 0);
