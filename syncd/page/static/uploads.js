// Send files one after the other, each with its progress: those that are dropped on the form, or chosen in it.

const form = document.querySelector("form[data-upload]");
const list = form?.querySelector("[data-uploads]");
const status = form?.querySelector("[data-upload-status]");
const waiting = [];
let isSending = false;
const counts = { sent: 0, failed: 0, all: 0 };

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function size(bytes) {
  return bytes < 1048576 ? `${Math.ceil(bytes / 1024).toLocaleString("en")} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

function add(files) {
  for (const file of files) {
    const row = element("li", {}, element("span", { className: "path", textContent: file.name }), element("span", { className: "detail", textContent: size(file.size) }));
    list.append(row);
    waiting.push({ file, row, workspace: form.elements.workspace.value });
    counts.all += 1;
  }
  list.hidden = !list.children.length;
  sendAll();
}

async function sendAll() {
  if (isSending) return;
  isSending = true;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    summarize();
    show(next, await send(next));
  }
  isSending = false;
  summarize();
}

function send({ file, row, workspace }) {
  const largest = Number(form.dataset.largest);
  if (file.size > largest) return { status: "failed", reason: `it has more than ${largest.toLocaleString("en")} bytes, the limit of a file`, isFinal: true };
  const bar = element("progress", { max: Math.max(file.size, 1), value: 0, ariaLabel: `Sending ${file.name}` });
  row.append(bar);
  const fields = new FormData();
  fields.append("csrf", form.elements.csrf.value);
  fields.append("workspace", workspace);
  fields.append("file", file, file.name);
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = ({ loaded }) => (bar.value = Math.min(loaded, bar.max));
    request.onload = () => resolve(read(request));
    request.onerror = () => resolve({ status: "failed", reason: "the file could not be read or sent: it is a folder, it changed, or the page has ended" });
    request.open("POST", form.action);
    request.setRequestHeader("accept", "application/json");
    request.send(fields);
  }).finally(() => bar.remove());
}

function read(request) {
  try {
    return JSON.parse(request.responseText).files[0];
  } catch {
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    return { status: "failed", reason: page.querySelector(".notice p")?.textContent ?? `the page answered ${request.status}` };
  }
}

function show(upload, result) {
  const { row } = upload;
  counts[result.status === "failed" ? "failed" : "sent"] += 1;
  const words = { queued: ["good", "queued"], same: ["", `already there as ${result.path}`], failed: ["bad", "not added"] }[result.status];
  row.append(element("span", { className: `badge ${words[0]}`, textContent: words[1] }));
  if (result.status !== "failed") return;
  if (!result.isFinal) {
    const retry = element("button", { type: "button", className: "small", textContent: "Retry", ariaLabel: `Retry ${upload.file.name}` });
    retry.addEventListener("click", () => {
      counts.failed -= 1;
      counts.all -= 1;
      row.remove();
      add([upload.file]);
    });
    row.append(retry);
  }
  row.append(element("p", { className: "why", textContent: result.reason }));
}

function summarize() {
  const failed = counts.failed ? `, ${counts.failed} not added` : "";
  status.textContent = `${counts.sent} of ${counts.all} ${counts.all === 1 ? "file" : "files"} sent${failed}${isSending ? "…" : "."}`;
}

if (form) {
  const input = form.elements.file;
  form.querySelector("[data-drop-hint]").hidden = false;
  form.querySelector("[data-send]").hidden = true; // files are sent when they are chosen
  input.addEventListener("change", () => {
    add(input.files);
    input.value = "";
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    form.classList.toggle("over", form.contains(event.target));
  });
  addEventListener("dragleave", () => form.classList.remove("over"));
  addEventListener("drop", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // the browser would open the file
    form.classList.remove("over");
    if (form.contains(event.target)) add(event.dataTransfer.files);
  });
  addEventListener("beforeunload", (event) => {
    if (isSending) event.preventDefault();
  });
}
