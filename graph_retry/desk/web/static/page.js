/* What the page does beyond plain forms: keys, one press for one answer, drafts, the connection. */
"use strict";
(() => {
  const one = (query) => document.querySelector(query);
  const all = (query) => [...document.querySelectorAll(query)];
  const answer = () => one("#answer");
  const main = () => one("#main");
  const DRAFT = "graph-retry:draft:", LAST = "graph-retry:last", DAYS = 14, PING_MS = 3000;

  const help = one("#help-button");
  help.hidden = false;
  help.addEventListener("click", () => one("#help").showModal());

  /* ---- The line: is the server there, is the person logged in, is the draft kept? ---- */
  const line = one("#line");
  const said = { here: "", draft: "" };
  const LINES = {
    ok: "connected",
    gone: "Not connected: the server does not answer.",
    out: "Logged out: log in again in another tab.",
  };
  const tell = (part, text) => {
    if (said[part] === text) return;
    said[part] = text;
    line.textContent = [said.draft, said.here].filter(Boolean).join(" · ");
    line.classList.toggle("is-bad", said.here !== LINES.ok || said.draft.startsWith("Not"));
  };
  const ping = async () => {
    try {
      const response = await fetch(line.dataset.alive, { cache: "no-store", signal: AbortSignal.timeout(PING_MS) });
      tell("here", [401, 403].includes(response.status) ? LINES.out : response.status >= 500 ? LINES.gone : LINES.ok);
    } catch { tell("here", LINES.gone); }
  };
  if (line) { ping(); setInterval(ping, PING_MS); addEventListener("online", ping); addEventListener("offline", ping); }

  /* ---- Drafts: what is typed stays in this browser until the server has taken it. ---- */
  const keyOf = () => {
    const path = answer() ? new URL(answer().action).pathname : location.pathname;
    const found = path.match(/^(.*)\/r\/([0-9a-f]+)/);
    const together = new URLSearchParams(location.search).has("together") ? ":together" : "";
    return found && `${DRAFT}${found[1]}:${found[2]}${together}`;
  };
  const stored = (key) => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } };
  const forget = (key) => { try { localStorage.removeItem(key); } catch { /* no storage: nothing was kept */ } };
  const keep = () => {
    const key = keyOf();
    if (!key || !answer() || answer().dataset.preview) return;
    const fields = [...new FormData(answer())].filter(([, value]) => typeof value === "string");
    try {
      localStorage.setItem(key, JSON.stringify({ at: Date.now(), fields }));
      tell("draft", "draft saved");
    } catch { tell("draft", "Not saved as a draft: too much text."); }
  };
  let waiting = 0, typed = false;
  const keepSoon = () => { typed = true; clearTimeout(waiting); waiting = setTimeout(keep, 200); };
  const keepNow = () => { if (typed) { clearTimeout(waiting); keep(); } };
  addEventListener("pagehide", keepNow);
  addEventListener("beforeunload", (event) => {
    keepNow();
    if (typed && said.draft.startsWith("Not")) event.preventDefault();
  });
  try {
    for (const key of Object.keys(localStorage).filter((each) => each.startsWith(DRAFT))) {
      if (!((stored(key) || {}).at > Date.now() - DAYS * 86400000)) forget(key);
    }
  } catch { /* no storage */ }

  /* ---- Sending stays on the page: what fails can be sent again. ---- */
  const show = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const fresh = page.querySelector("#main");
    if (!fresh) return false;
    main().replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    scrollTo(0, 0);
    htmx.process(main());
    start();
    return true;
  };
  const trouble = (text) => {
    let box = one("#trouble");
    if (!box) {
      box = document.createElement("div");
      box.id = "trouble";
      box.className = "refused";
      box.setAttribute("role", "alert");
      box.tabIndex = -1;
      main().prepend(box);
    }
    box.textContent = text;
    box.focus();
  };
  const send = async (form, submitter) => {
    const key = keyOf(), data = new FormData(form, submitter);
    if (submitter && submitter.classList.contains("send")) submitter.dataset.was = submitter.textContent;
    clearTimeout(waiting);
    form.dataset.sent = "yes";
    form.setAttribute("aria-busy", "true");
    if (submitter && submitter.dataset.was) submitter.textContent += " …";
    try {
      if (!form.dataset.preview) keep();
      const response = await fetch(form.action, { method: "POST", body: data });
      if (response.redirected && response.ok) {
        typed = false;  // The draft stays until the outcome says that the answer was taken.
        try { sessionStorage.setItem(LAST, response.url); } catch { /* no storage: its own page tells */ }
        location.assign(response.url);
        return;
      }
      if (response.status === 401 || (response.status === 403 && said.here === LINES.out)) {
        tell("here", LINES.out);
        trouble("Not sent: you are logged out. Your text is kept. Log in again in another tab, then send it here.");
      } else if (response.status >= 500) {
        trouble("Not sent: the server failed. Your text is kept. Send it again.");
      } else if ([413, 415, 400, 403, 408].includes(response.status)) {
        const why = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#main p");
        trouble(`Not sent. ${why ? why.textContent : ""} Your text is kept.`);
      } else if (show(await response.text())) return;
    } catch {
      tell("here", LINES.gone);
      trouble("Not sent: the server does not answer. Your text is kept in this browser. Send it again when the page is connected.");
    }
    delete form.dataset.sent;
    form.removeAttribute("aria-busy");
    if (submitter && submitter.dataset.was) submitter.textContent = submitter.dataset.was;
  };
  document.addEventListener("submit", (event) => {
    if (event.target !== answer()) return;
    event.preventDefault();
    if (!event.target.dataset.sent) send(event.target, event.submitter);
  });
  /* The address of a view has only what is chosen. */
  document.addEventListener("formdata", (event) => {
    if (event.target.id !== "filter") return;
    for (const name of new Set(event.formData.keys())) {
      const chosen = event.formData.getAll(name).filter((text) => text && !(name === "order" && text === "grouped"));
      event.formData.delete(name);
      for (const text of chosen) event.formData.append(name, text);
    }
  });
  const restore = async () => {
    const key = keyOf(), draft = key && stored(key);
    if (!draft || (answer() && answer().dataset.posted) || location.pathname.includes("/a/")) return;
    const form = answer(), data = new FormData();
    if (form) form.inert = true;  // Typing now would replace the draft that is about to come back.
    for (const [name, value] of [...draft.fields, ["draft.do", "restore"]]) data.append(name, value);
    try {
      const response = await fetch(location.pathname, { method: "POST", body: data });
      if (![200, 409, 410, 422].includes(response.status) || !show(await response.text())) throw response;
    } catch {
      if (form) form.inert = false;
      return;
    }
    if (!answer()) { forget(key); return; }
    const note = document.createElement("p");
    note.className = "note draft";
    note.setAttribute("role", "status");
    note.textContent = "This is your draft. ";
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "plain small";
    drop.textContent = "Discard it";
    drop.addEventListener("click", () => { typed = false; forget(key); location.replace(location.href); });
    note.append(drop);
    main().prepend(note);
    tell("draft", "draft saved");
  };

  /* ---- While a person types, the server judges the draft by the schema of its question. ---- */
  const JUDGE_MS = 400, JUDGED = 100000, PER_FIELD = 200;  // Bytes that the server reads of a draft (`SHORT`).
  let judgeSoon = 0, judging = null;
  const place_of = (control) => control.name.slice(control.name.indexOf(":") + 1);
  const told = (panel, found) => {
    const boxes = new Map();
    for (const control of panel.querySelectorAll(".form [name*=':']:not([type=checkbox])")) boxes.set(place_of(control), control);
    for (const name of Object.keys(found)) {
      let near = name;
      while (near && !boxes.has(near)) near = near.slice(0, near.lastIndexOf("/"));
      if (near !== name) { found[near] = [...(found[near] || []), ...found[name]]; delete found[name]; }
    }
    for (const [name, control] of boxes) {
      const box = control.closest(".field, .group"), id = control.id || `${control.name}-group`, problems = found[name] || [];
      if (!box) continue;
      for (const old of box.querySelectorAll(":scope > .problem")) old.remove();
      const after = [...box.querySelectorAll(":scope > :is(legend, .field-head, .tick, .hint)")].pop();
      for (const text of [...problems].reverse()) {
        const line = document.createElement("p");
        line.className = "problem";
        line.id = `${id}-problem`;
        line.textContent = text;
        if (after) after.after(line); else box.prepend(line);
      }
      box.classList.toggle("has-problem", problems.length > 0);
      if (problems.length) box.classList.add("is-marked");  // It stays in sight while it is mended.
      if (control.type === "hidden") continue;
      control.toggleAttribute("aria-invalid", problems.length > 0);
      if (problems.length) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", `${id}-problem`); }
    }
    const count = panel.querySelectorAll(".has-problem").length, line = panel.querySelector(".verdict");
    if (line) line.textContent = count ? `${count === 1 ? "One value is" : `${count} values are`} not valid yet.` : "Valid, as far as its schema tells.";
  };
  const judge = async (panel) => {
    const key = panel.closest("article").querySelector("[name=review]").value, form = new FormData(answer());
    if (judging) judging.abort();
    if (new Blob([...form].flat()).size + PER_FIELD * [...form].length > JUDGED) return;  // It is judged when it is sent.
    judging = new AbortController();
    try {
      const response = await fetch(`${answer().action.replace(/[^/]*$/, key)}/draft`, { method: "POST", body: form, signal: judging.signal });
      if (response.status === 200) told(panel, await response.json());
    } catch { /* The line tells whether the server is there. */ }
  };
  document.addEventListener("input", (event) => {
    const panel = answer() && !answer().dataset.preview && event.target.closest(".panel:has(.verdict)");
    if (!panel) return;
    clearTimeout(judgeSoon);
    judgeSoon = setTimeout(() => { if (panel.isConnected) judge(panel); }, JUDGE_MS);
  });

  /* Typing a value means that there is one: the ticks beside it, and around it, go. */
  document.addEventListener("input", (event) => {
    const target = event.target, form = answer();
    if (!form || !form.contains(target)) return;
    keepSoon();
    if (target.type === "checkbox" || !target.name) return;
    for (let node = target.closest(".field, .group"); node; node = node.parentElement.closest(".group")) {
      const tick = node.querySelector(":scope > .tick input, :scope > .field-head .tick input");
      if (tick && target.value !== "") tick.checked = false;
    }
  });
  document.addEventListener("htmx:afterSettle", () => {
    finish();
    for (const row of all(".side .row")) row.toggleAttribute("aria-current", row.pathname === location.pathname);
    const standing = one("#standing");
    if (!answer() || !standing || !standing.textContent.trim()) return;
    for (const button of all(".send")) button.textContent = "Somebody else answered: show what I typed";
  });

  /* ---- The places of mistakes: in the text, and as fields. Equal texts light up together. ---- */
  const wrongFields = () => all(".way > input:checked ~ .panel .is-marked").map((each) => each.querySelector("input:not([type=hidden]):not([type=checkbox]), textarea, select")).filter(Boolean);
  const light = (text) => {
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("same");
    const sought = text.replace(/^"|"$/g, "");
    if (sought.length < 2 || sought.length > 200) return;
    const ranges = [];
    const walker = document.createTreeWalker(one(".evidence"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < 50; node = walker.nextNode()) {
      for (let at = node.data.indexOf(sought); at >= 0 && ranges.length < 50; at = node.data.indexOf(sought, at + 1)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + sought.length);
        ranges.push(range);
      }
    }
    if (ranges.length) CSS.highlights.set("same", new Highlight(...ranges));
  };
  const place = (mark) => {
    const text = mark.closest("pre");
    text.scrollTop += mark.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 3;
    light(mark.textContent);
  };
  const placeOf = (field) => {
    const name = field && field.name && decodeURIComponent(field.name.slice(field.name.indexOf(":") + 1));
    return name && one(`mark[data-place="${CSS.escape(name)}"]`);
  };
  let mistake = -1;
  const jump = (by) => {
    const fields = wrongFields(), marks = all("mark[data-place]");
    const places = fields.length ? fields : marks;
    if (!places.length) return;
    const at = places.indexOf(document.activeElement);
    mistake = ((at < 0 ? mistake : at) + by + places.length) % places.length;
    places[mistake].focus();
    if (places[mistake].select) places[mistake].select();
    const mark = fields.length ? placeOf(places[mistake]) : places[mistake];
    if (mark) place(mark);
  };
  document.addEventListener("click", (event) => { if (event.target.closest(".jump")) jump(1); });
  /* The name of a place leads to its field, and without one to its mark in the text. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.path"), card = link && link.closest("article");
    if (!card) return;
    const fieldOf = () => [...card.querySelectorAll(".way > input:checked ~ .panel .form [name*=':']:not([type=hidden], [type=checkbox])")].find((each) => place_of(each) === link.dataset.place);
    const way = card.querySelector("[data-way=r]");
    if (!fieldOf() && way) way.checked = true;
    const field = fieldOf();
    if (!field) return;
    event.preventDefault();
    field.focus();
    if (field.select) field.select();
  });
  /* A text of one line is chosen by Tab, as browsers choose that of an input. */
  document.addEventListener("keyup", (event) => {
    if (event.key === "Tab" && event.target.rows === 1) event.target.select();
  });
  document.addEventListener("focusin", (event) => {
    const mark = event.target.closest(".is-marked") && placeOf(event.target);
    if (mark) place(mark);
  });

  /* The outcome of an answer is the end of its drafts. */
  const finish = () => {
    const root = location.pathname.match(/^(.*)\/r\//), taken = one("[data-taken]");
    if (!root || !taken) return;
    for (const key of taken.dataset.taken.split(" ")) for (const kind of ["", ":together"]) forget(`${DRAFT}${root[1]}:${key}${kind}`);
  };
  /* Ticks of a preview stay as they were left, over pages and rounds of this tab. */
  document.addEventListener("change", (event) => {
    if (event.target.name === "tick") sessionStorage.setItem(event.target.value, event.target.checked ? "1" : "");
    ticks();
  });
  const ticks = () => {
    for (const box of all("[name=tick]:not(:disabled)")) {
      const left = sessionStorage.getItem(box.value);
      if (left !== null) box.checked = left === "1";
    }
    if (one("#ticked")) one("#ticked").textContent = `${all("[name=tick]:checked").length} of ${all("[name=tick]").length} are ticked.`;
  };
  const start = () => {
    finish();
    ticks();
    for (const button of all(".jump")) button.hidden = false;
    const mark = one("mark[data-place]");
    if (mark) place(mark);
    mistake = -1;
    const focus = one(".refused") || one("#next") || one("#now");
    if (focus) focus.focus();
    for (const select of all(".filter select")) select.addEventListener("change", () => select.form.requestSubmit());
  };
  /* What became of the last answer, on whatever page its sender is now; `u` takes it back there, too. */
  const toldHere = (url) => {
    const here = url && new URL(url).pathname === location.pathname;
    if (here && !one("#main[hx-trigger]")) sessionStorage.removeItem(LAST);  // It no longer renews itself: the end.
    return here;
  };
  document.addEventListener("htmx:afterSettle", () => toldHere(sessionStorage.getItem(LAST)));
  const follow = async () => {
    const url = sessionStorage.getItem(LAST);
    if (!url || toldHere(url)) return;
    const response = await fetch(url), page = new DOMParser().parseFromString(await response.text(), "text/html");
    const text = (query) => (page.querySelector(query) || { textContent: "" }).textContent.trim();
    let box = one("#last");
    if (!box) {
      box = document.createElement("p");
      box.id = "last";
      box.setAttribute("role", "status");
      box.innerHTML = "<a></a> <span></span> <button type=button id=undo class='plain small'>Undo <kbd>u</kbd></button>";
      box.querySelector("button").addEventListener("click", async () => {
        const form = new FormData();
        form.append("undo", "1");
        await fetch(url, { method: "POST", body: form });
        sessionStorage.removeItem(LAST);
        location.assign(url.replace(/\/(a|alike)\/[^/]*$/, ""));  // The form has the draft.
      });
      main().before(box);
    }
    box.querySelector("a").href = url;
    box.querySelector("a").textContent = text("#main .facts .subject") || "Your answers";
    box.querySelector("span").textContent = text("#main .refused b") || text("#main h1");
    box.querySelector("button").hidden = !page.querySelector("#undo");
    if (page.querySelector("#main[hx-trigger]")) setTimeout(retell, 1000); else sessionStorage.removeItem(LAST);
  };
  const retell = () => follow().catch(() => setTimeout(retell, PING_MS));  // The line tells why it fails.
  start();
  restore();
  retell();

  const step = (by) => {
    const rows = all(".row, .pick input");
    const at = rows.indexOf(document.activeElement);
    const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (row) row.focus();
  };
  const reveal = (way) => way.querySelector(".panel").scrollIntoView({ block: "nearest" });
  document.addEventListener("change", (event) => {
    if (event.target.matches(".way > input:has(~ .panel)")) reveal(event.target.parentElement);
  });
  const choose = (key) => {
    const card = document.activeElement.closest("article") || document;
    const way = card.querySelector(`[data-way="${CSS.escape(key)}"]`);
    if (!way) return false;
    way.checked = true;
    const panel = way.parentElement.querySelector(".panel");
    const inside = wrongFields()[0] || panel.querySelector("textarea, input:not([type=hidden], [type=checkbox]), select, button");
    reveal(way.parentElement);
    (inside || way).focus();
    if (inside && inside.closest(".is-marked") && inside.select) inside.select();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    const target = event.target, form = answer();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
      event.preventDefault();
      const button = one(".way > input:checked ~ .panel .send") || one(".send-all .send");
      if (button) form.requestSubmit(button);
      return;
    }
    if (event.key === "F8") { event.preventDefault(); jump(event.shiftKey ? -1 : 1); return; }
    if (event.key === "Escape" && target.matches("input, textarea, select")) { target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    if (target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/" && one("#search")) one("#search").focus();
    else if (event.key === "?") help.click();
    else if (event.key === "u" && one("#undo")) one("#undo").click();
    else if ("gh".includes(event.key) && one(`a[data-key=${event.key}]`)) one(`a[data-key=${event.key}]`).click();
    else if (!choose(event.key)) return;
    event.preventDefault();
  });
})();
