// Drive Chromium for tests: reads calls as lines of JSON from stdin, and answers each with one line.
//
// A call is {"tab", "call", "args"}: `call` is a method of the tab's page, such as "click" or "keyboard.press", or one of `own`.
// Every tab is a browser context of its own, with cookies of its own.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const [executablePath, ...args] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args });
const tabs = new Map();

const own = {
  // Open a tab: problems of its pages are collected from the first request on.
  async open(name, { origin, ...options }) {
    const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
    context.setDefaultTimeout(120_000); // a busy machine may take long
    const page = await context.newPage();
    const problems = { console: [], errors: [], foreign: [] };
    page.on("console", (message) => message.type() === "error" && problems.console.push(message.text()));
    page.on("pageerror", (error) => problems.errors.push(String(error)));
    page.on("dialog", (dialog) => problems.errors.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
    context.on("request", (request) => new URL(request.url()).origin !== origin && problems.foreign.push(request.url()));
    tabs.set(name, { page, problems });
  },
  async close({ page }) {
    await page.context().close();
  },
  // Hold back each answer for an address that matches a pattern, until `release`.
  async hold(tab, pattern) {
    const released = new Promise((release) => (tab.release = release));
    tab.asked = new Promise((ask) =>
      tab.page.route(pattern, async (route) => {
        ask();
        await released;
        await route.continue();
      }),
    );
  },
  // Wait until an answer is held back.
  holds: ({ asked }) => asked,
  async release({ page, release }) {
    release();
    await page.unrouteAll({ behavior: "wait" });
  },
  // Let each request for an address that matches a pattern fail: with an answer of this status, or without one; until `release`.
  async fail(tab, pattern, status) {
    tab.release = () => {};
    await tab.page.route(pattern, (route) => (status ? route.fulfill({ status, contentType: "text/html", body: "<p>no page" }) : route.abort()));
  },
  problems: ({ problems }) => problems,
  // The errors on the console so far, which are not counted any more.
  forgive: ({ problems }) => problems.console.splice(0),
  // The violations of accessibility rules: each rule with the elements that break it.
  async axe({ page }) {
    const source = `${await (await import("node:fs/promises")).readFile(AXE, "utf8")}; void 0`;
    await page.evaluate(source);
    const { violations } = await page.evaluate(
      // What passes is checked like the rest, but not described element by element.
      (values) => axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }),
      RULES,
    );
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
  },
  // Bytes of each answer for an address, by its own address, and the milliseconds until the first paint.
  async weight({ page }, address) {
    await page.goto(address, { waitUntil: "load" });
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
    return page.evaluate(() => ({
      files: Object.fromEntries(
        [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
          .filter((entry) => entry.initiatorType !== "fetch")
          .map((entry) => [entry.name, entry.encodedBodySize]),
      ),
      paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    }));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { tab, call, args: values } = JSON.parse(line);
  let answer;
  try {
    let result;
    if (call === "open") await own.open(tab, ...values);
    else if (call in own) result = await own[call](tabs.get(tab), ...values);
    else {
      const path = call.split(".");
      const method = path.pop();
      const target = path.reduce((object, name) => object[name], tabs.get(tab).page);
      result = await target[method](...values);
    }
    answer = { result: ["object", "undefined"].includes(typeof result) && !isPlain(result) ? null : result };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();

function isPlain(value) {
  return value !== null && value !== undefined && [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value));
}
