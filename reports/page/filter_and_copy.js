const one = id => document.getElementById(id), all = query => [...document.querySelectorAll(query)];
const filter = one("filter"), shown = one("shown"), said = one("said"), findings = all(".finding");
function apply() {
  const kind = one("by-kind").value, severity = one("by-severity").value, words = one("by-text").value.toLowerCase().split(/\s+/);
  let count = 0;
  for (const finding of findings) {
    const text = finding.textContent.toLowerCase();
    const fits = (!kind || finding.dataset.kind === kind) && (!severity || finding.dataset.severity === severity)
      && words.every(word => text.includes(word));
    finding.hidden = !fits;
    one("i-" + finding.id).hidden = !fits;
    count += fits ? 1 : 0;
  }
  shown.textContent = count + " of " + findings.length + " shown";
}
if (filter) {
  filter.hidden = findings.length < 2;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", event => event.preventDefault());
  apply();
}
async function copy(button) {
  const code = button.parentElement.querySelector("code"), range = document.createRange();
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  said.textContent = button.dataset.what + " copied";
  setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 1500);
}
for (const button of all("button[data-what]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
