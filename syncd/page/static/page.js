// Enhance the page: live regions, keyboard shortcuts, and searches as one types. Everything works without it, except for these.

import { openSearchBox, takeOverText } from "./search_box.js";

const CHORD = 1500; // milliseconds within which a letter follows g
const DEBOUNCE = 120; // milliseconds without a key before a search
const SETTLE = 300; // milliseconds after loading in which no key decides, because nobody has read the page yet
const RETRY = 2000; // milliseconds after a failed refresh before the next one; each further failure doubles them
const LONGEST_RETRY = 60_000;
const UNREACHABLE = "The page did not answer. Try again in a moment.";
const body = document.body;

// Live regions: elements with an id and data-live are replaced by those of the same address, fetched again.
// The answer of a change, with data-answer, stays as it is.

const fetching = new Map(); // the regions of a refresh in progress → its controller

// Replace regions; return null if that was done or a later refresh does it, or else the failure: its sentence, and whether it may pass.
async function refresh(address, only) {
  fetching.get(only)?.abort();
  const controller = new AbortController();
  fetching.set(only, controller);
  try {
    const response = await fetch(address, { signal: controller.signal, headers: { accept: "text/html", "x-refresh": "1" } });
    if (response.status === 401) {
      reload();
      return null;
    }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const [regions, isTemporary] = [[...document.querySelectorAll(only)], response.status === 429 || response.status >= 500];
    if (isTemporary || !regions.some((region) => fresh.getElementById(region.id))) {
      return { sentence: fresh.querySelector(".notice p")?.textContent ?? UNREACHABLE, isTemporary };
    }
    for (const region of regions) replaceRegion(region, fresh.getElementById(region.id));
    return null;
  } catch (error) {
    return error.name === "AbortError" ? null : { sentence: UNREACHABLE, isTemporary: true };
  } finally {
    if (fetching.get(only) === controller) fetching.delete(only);
  }
}

function replaceRegion(region, fresh) {
  if (!fresh || isSending() || showChange(region, fresh)) return;
  if (region.getAttribute("role") === "status") return showStatus(region, fresh.textContent);
  keepOpen(region, fresh);
  if (region.outerHTML === fresh.outerHTML || isBeingEdited(region)) return;
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute("href") && `[href="${CSS.escape(focused.getAttribute("href"))}"]`);
  region.replaceWith(fresh);
  if (place) fresh.querySelector(place)?.focus({ preventScroll: true });
}

// The element stays, because screen readers announce only changes inside one that they know.
function showStatus(region, text) {
  if (region.textContent !== text) region.textContent = text;
}

// A decision applies to the text that was read: a capture whose text changed stays as it was shown, and says so. Return whether it did.
function showChange(card, fresh) {
  const [read, now] = [card.dataset.body, fresh.dataset.body];
  const title = (region) => region.querySelector("h2").textContent;
  if (!read || !now || (read === now && title(card) === title(fresh))) return false;
  if (card.querySelector("[data-changed]")) return true;
  const notice = Object.assign(document.createElement("p"), { className: "warning", role: "alert", textContent: "This capture changed after it was shown. " });
  notice.dataset.changed = "";
  notice.append(Object.assign(document.createElement("a"), { href: location.pathname + location.search, textContent: "Show the new text" }));
  card.querySelector("header").append(notice);
  return true;
}

// Details that the reader opened or closed, known by the id or the text of their summaries, stay so.
function keepOpen(region, fresh) {
  const name = (summary) => summary.id || summary.textContent;
  const states = new Map([...region.querySelectorAll("details > summary")].map((summary) => [name(summary), summary.parentElement.open]));
  for (const summary of fresh.querySelectorAll("details > summary")) {
    summary.parentElement.open = states.get(name(summary)) ?? summary.parentElement.open;
  }
}

function isBeingEdited(region) {
  const field = document.activeElement;
  if (region.contains(field) && field.matches("input, textarea, select")) return true;
  return isChanged(region);
}

function isChanged(region, fields = "textarea, input") {
  return [...region.querySelectorAll(fields)].some((input) =>
    input.type === "checkbox" || input.type === "radio" ? input.checked !== input.defaultChecked : input.value !== input.defaultValue,
  );
}

// Events: the page is told when data changed, and when the daemon is gone or back. A hidden page asks for nothing.

const connection = document.getElementById("connection");
let stream = null;
let stamp = body.dataset.stamp;
let wasGone = "waits" in body.dataset;
let retry = 0; // the timer of the next attempt

function showConnection(text) {
  connection.textContent = text;
  connection.hidden = !text;
  body.toggleAttribute("data-stale", text !== "");
}

// Text that was typed is never thrown away by a reload.
function reload() {
  if (!isChanged(document)) location.reload();
  else showConnection("The session has ended, and your text is only in this tab: copy it, then run memex open in a terminal.");
}

addEventListener("beforeunload", (event) => {
  const isUnsaved = document.querySelector("form[data-unsaved]") || isChanged(document, 'form[method="post"] textarea');
  if (isUnsaved && !isSending()) event.preventDefault();
});

function follow() {
  stream = new EventSource("/events");
  stream.onmessage = (event) => onState(JSON.parse(event.data));
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) reload(); // the session ended
    else showConnection("The page has ended. To open it again, run memex open in a terminal.");
  };
}

async function onState(state) {
  clearTimeout(retry);
  if (!state.answers) {
    wasGone = true;
    return showConnection("The daemon does not run. What you see may be out of date; the page continues by itself when the daemon is back.");
  }
  if ("waits" in body.dataset) return body.dataset.waits ? location.replace(body.dataset.waits) : location.reload();
  showConnection("");
  if (state.stamp !== stamp || wasGone) await catchUp(state.stamp);
}

// Refresh the live regions until they show the data with this stamp; from the second failure on, say why they don't.
async function catchUp(latest, wait = RETRY) {
  clearTimeout(retry);
  const address = location.href;
  const failure = document.querySelector("body:not([data-answer]) [data-live]") ? await refresh(address, "[data-live]") : null;
  if (stream === null) return; // it is hidden now, and asks when it is seen again
  if (failure?.isTemporary) {
    if (wait > RETRY) showConnection(`What you see may be out of date. ${failure.sentence}`);
    retry = setTimeout(catchUp, wait, latest, Math.min(2 * wait, LONGEST_RETRY));
    return;
  }
  showConnection("");
  if (location.href !== address) await catchUp(latest); // a search began, whose hits may be those of the text before
  else [stamp, wasGone] = [latest, false];
}

function followWhileVisible() {
  if (document.visibilityState === "visible") stream ?? follow();
  else unfollow();
}

function unfollow() {
  clearTimeout(retry);
  stream?.close();
  stream = null;
}

if ("livePage" in body.dataset) {
  document.addEventListener("visibilitychange", followWhileVisible);
  addEventListener("pagehide", unfollow);
  addEventListener("pageshow", followWhileVisible);
}

// Searches as one types: a form with data-search shows its answer in the element that data-search names.

for (const form of document.querySelectorAll("form[data-search]")) {
  let timer = 0;
  const search = async () => {
    const values = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = `${form.getAttribute("action")}?${new URLSearchParams(values)}`;
    history.replaceState(null, "", address);
    const failure = await refresh(address, form.dataset.search);
    if (failure) showFailure(form.dataset.search, failure.sentence);
  };
  const later = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(search, wait);
  };
  form.addEventListener("input", () => later(DEBOUNCE));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    later(0);
  });
}

// The hits of another text are not left below what was typed.
function showFailure(regions, sentence) {
  for (const region of document.querySelectorAll(regions)) {
    if (region.getAttribute("role") === "status") showStatus(region, "");
    else if (region.matches("section")) region.replaceChildren(Object.assign(document.createElement("p"), { className: "message wrong", role: "alert", textContent: sentence }));
  }
}

takeOverText();

// The switch for single-letter keys changes nothing else on the page, so that a text being typed stays.

const letterKeys = document.querySelector("form[data-switch=letter-keys]");

letterKeys?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(letterKeys, event.submitter));
  const answer = await fetch(letterKeys.action, { method: "POST", headers: { accept: "application/json" }, body: fields }).catch(() => null);
  if (!answer?.ok) return reload();
  const { on } = await answer.json();
  body.dataset.letterKeys = on ? "on" : "off";
  event.submitter.value = on ? "off" : "on";
  event.submitter.textContent = `Turn ${event.submitter.value} single-letter keys`;
});

// A form with data-busy shows that its answer takes a while.

addEventListener("submit", ({ target }) => {
  const text = target.querySelector("[data-busy-text]");
  if (text) text.textContent = target.dataset.busy;
});

// A change is sent once: until its answer is shown, no form sends another one, and the regions stay as they are.

function isSending() {
  return document.querySelector("form[data-sent]") !== null;
}

addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("method") !== "post" || event.submitter?.formMethod === "dialog") return;
  if (isSending()) return event.preventDefault();
  form.dataset.sent = "";
  setTimeout(() => setDisabled(form, true)); // later, because the button that was pressed is a part of what is sent
});

addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll('form[method="post"]')) {
    delete form.dataset.sent;
    setDisabled(form, false);
  }
});

function setDisabled(form, isDisabled) {
  for (const button of form.elements) if (button.matches("button:not([hidden])")) button.disabled = isDisabled;
}

setTimeout(() => (body.dataset.settled = ""), SETTLE);

// Keyboard

const help = document.getElementById("help");
const helpButton = document.querySelector("[data-help]");
let chord = 0; // when g was pressed

if (helpButton) {
  helpButton.hidden = false;
  helpButton.addEventListener("click", () => help.showModal());
}

// On a phone, the navigation scrolls: the present view is in sight beside the button, and so is the link that has the focus.
// scrollIntoView would also make the first Tab start at the view, and miss the link that skips to the content.
function center(link) {
  const [bar, place] = [link.parentElement, link].map((element) => element.getBoundingClientRect());
  link.parentElement.scrollLeft += place.left + place.width / 2 - (bar.left + bar.width / 2);
}

const present = document.querySelector("nav [aria-current]");
if (present) center(present);
document.querySelector(".top nav")?.addEventListener("focusin", ({ target }) => {
  if (target.matches(":focus-visible")) center(target); // not under a mouse, which would miss the link
});

function items() {
  return [...document.querySelectorAll("[data-list] [data-item]")].filter((item) => item.offsetParent !== null);
}

function step(by) {
  const all = items();
  if (!all.length) return false;
  const at = all.findIndex((item) => item === document.activeElement || item.closest("li, tr")?.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  if (next < 0) return focusSearch();
  all[Math.min(next, all.length - 1)].focus();
  return true;
}

function focusSearch() {
  const field = document.querySelector("main input[type=search]");
  if (!field) openSearchBox();
  else {
    field.focus();
    field.select();
  }
  return true;
}

function tick() {
  const box = document.activeElement?.closest("li")?.querySelector("input[type=checkbox]") ?? document.querySelector(".current input[type=checkbox]");
  box?.click();
  return Boolean(box);
}

function openInObsidian() {
  const near = document.activeElement?.closest("li, tr, article");
  const anchor = near?.querySelector("a[data-obsidian]") ?? document.querySelector("main > article a[data-obsidian]");
  if (!anchor) return false;
  anchor.click();
  return true;
}

function goTo(key) {
  const anchor = document.querySelector(`nav a[data-key="${CSS.escape(key)}"]`);
  if (!anchor) return false;
  anchor.click();
  return true;
}

function act(event) {
  const isTyping = event.target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (isTyping) {
    if (event.target.type === "search" && event.key === "ArrowDown") return step(1);
    if (event.key === "Escape") event.target.blur();
    return false;
  }
  if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return false;
  if (event.key.length === 1 && body.dataset.letterKeys === "off") return false;
  if (chord && event.timeStamp - chord < CHORD) {
    chord = 0;
    return goTo(event.key);
  }
  const button = document.querySelector(`[data-press="${CSS.escape(event.key)}"]`);
  if (button) {
    const isSafe = button.type === "button"; // it submits nothing, and may be held
    if (isSafe || (!event.repeat && "settled" in body.dataset && !isSending())) button.click();
    return true;
  }
  switch (event.key) {
    case "g":
      chord = event.timeStamp;
      return true;
    case "/":
      return focusSearch();
    case "?":
      help.showModal();
      return true;
    case "j":
    case "ArrowDown":
      return step(1);
    case "k":
    case "ArrowUp":
      return step(-1);
    case "x":
      return tick();
    case "o":
      return openInObsidian();
    default:
      return false;
  }
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (act(event)) event.preventDefault();
});
