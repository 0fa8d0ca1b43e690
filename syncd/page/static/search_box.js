// The search box: on a view without a search field, `/` opens it at once, so that no letter is lost while the search view loads.
// A pause leads to the search view, which takes over the text with the letters that followed the pause.

const PAUSE = 400; // milliseconds without a key before the search view is asked for
const TEXT = "search-box"; // the name of the text in the storage of this tab, on its way to the search view
const box = document.getElementById("search-box");
const field = box?.querySelector("input");
let timer = 0;

export function openSearchBox() {
  box?.showModal();
  field?.select();
}

function waitForPause(event) {
  clearTimeout(timer);
  if (field.value && !event.isComposing) timer = setTimeout(() => field.form.requestSubmit(), PAUSE);
}

if (box) {
  box.addEventListener("input", waitForPause);
  box.addEventListener("compositionend", waitForPause);
  box.addEventListener("close", () => clearTimeout(timer));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault(); // a search field would be emptied first
    box.close();
  });
  addEventListener("pagehide", () => {
    if (box.open) sessionStorage.setItem(TEXT, field.value);
  });
}

// In the search view, letters may be in the field already, because it had the focus before this script ran: they came last.
export function takeOverText() {
  const [text, target] = [sessionStorage.getItem(TEXT), document.querySelector('main form[action="/search"] input[type=search]')];
  if (text === null || !target) return;
  sessionStorage.removeItem(TEXT);
  const searched = target.defaultValue;
  if (!text.startsWith(searched) || !target.value.startsWith(searched)) return;
  target.value = text + target.value.slice(searched.length);
  target.focus();
  if (target.value !== searched) target.form.dispatchEvent(new Event("input"));
}
