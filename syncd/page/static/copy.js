// Buttons with data-copy copy the text of the element that they name. They are hidden where a script can't copy.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied: select the text, and copy it";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
}
