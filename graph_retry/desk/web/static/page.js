/* What the page does beyond plain forms: keys, and one press for one answer. */
"use strict";
(() => {
  const one = (query) => document.querySelector(query);
  const all = (query) => [...document.querySelectorAll(query)];
  const form = one("#answer");
  let typed = false;

  const help = one("#help-button");
  help.hidden = false;
  help.addEventListener("click", () => one("#help").showModal());

  /* Typing a value means that there is one: the ticks beside it, and around it, go. */
  document.addEventListener("input", (event) => {
    const target = event.target;
    if (!form || !form.contains(target)) return;
    typed = true;
    if (target.type === "checkbox" || !target.name) return;
    for (let node = target.closest(".field, .group"); node; node = node.parentElement.closest(".group")) {
      const tick = node.querySelector(":scope > .tick input, :scope > .field-head .tick input");
      if (tick && target.value !== "") tick.checked = false;
    }
  });
  if (form) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) { event.preventDefault(); return; }
      /* This page may be the answer to a posted form: the way back must not post that form again. */
      history.replaceState(null, "", location.href);
      form.dataset.sent = "yes";
      typed = false;
      if (event.submitter && event.submitter.classList.contains("send")) event.submitter.textContent += " …";
      form.setAttribute("aria-busy", "true");
    });
    window.addEventListener("beforeunload", (event) => { if (typed) event.preventDefault(); });
    window.addEventListener("pageshow", () => { delete form.dataset.sent; });
    const first = one(".refused");
    if (first) first.focus();
  }
  const next = one("#next");
  if (next) next.focus();
  for (const select of all(".filter select")) select.addEventListener("change", () => select.form.requestSubmit());

  const step = (by) => {
    const rows = all(".row, .pick input");
    const at = rows.indexOf(document.activeElement);
    const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (row) row.focus();
  };
  const choose = (key) => {
    const card = document.activeElement.closest("article") || document;
    const way = card.querySelector(`[data-way="${CSS.escape(key)}"]`);
    if (!way) return false;
    way.checked = true;
    const panel = way.parentElement.querySelector(".panel");
    const inside = panel && panel.querySelector("textarea, input:not([type=hidden]), select, button");
    (inside || way).focus();
    way.parentElement.scrollIntoView({ block: "nearest" });
    return true;
  };
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
      event.preventDefault();
      const button = one(".way > input:checked ~ .panel .send") || one(".send-all .send");
      if (button) form.requestSubmit(button);
      return;
    }
    if (event.key === "Escape" && target.matches("input, textarea, select")) { target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    if (target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/" && one("#search")) one("#search").focus();
    else if (event.key === "?") help.click();
    else if ("gh".includes(event.key) && one(`a[data-key=${event.key}]`)) one(`a[data-key=${event.key}]`).click();
    else if (!choose(event.key)) return;
    event.preventDefault();
  });
})();
