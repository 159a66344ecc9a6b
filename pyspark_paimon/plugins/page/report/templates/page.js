(() => {
  "use strict";
  const tip = document.getElementById("tip"), live = document.getElementById("live"), form = document.querySelector("form.filter");
  const marked = (node) => node instanceof Element ? node.closest(".box,.snapshot") : null;
  let chosen = null;

  function show(node) {
    tip.replaceChildren(...node.getAttribute("aria-label").split("; ").map((text) => {
      const line = document.createElement("div");
      line.textContent = text;
      return line;
    }));
    tip.hidden = false;
    const box = node.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(box.left, innerWidth - own.width - 8));
    const below = box.bottom + 8 + own.height < innerHeight;
    tip.style.left = left + "px";
    tip.style.top = Math.max(8, below ? box.bottom + 8 : box.top - own.height - 8) + "px";
  }
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => { const node = marked(event.target); if (node) show(node); else hide(); });
  document.addEventListener("focusin", (event) => { const node = marked(event.target); if (node) show(node); else hide(); });
  document.addEventListener("scroll", hide, true);

  function step(node, key) {
    const all = [...node.parentNode.querySelectorAll(".box,.snapshot")], at = all.indexOf(node);
    if (key === "Home") return all[0];
    if (key === "End") return all[all.length - 1];
    if (key === "ArrowRight") return all[at + 1];
    if (key === "ArrowLeft") return all[at - 1];
    const own = node.getBoundingClientRect(), middle = own.left + own.width / 2, down = key === "ArrowDown";
    let best = null, least = Infinity;
    for (const other of all) {
      const box = other.getBoundingClientRect(), apart = down ? box.top - own.top : own.top - box.top;
      if (apart < 4) continue;
      const far = apart * 1000 + Math.abs(box.left + box.width / 2 - middle);
      if (far < least) { least = far; best = other; }
    }
    return best;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const node = marked(event.target);
    if (!node || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const next = step(node, event.key);
    if (!next) return;
    node.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });

  function open(name) {
    for (const figure of live.querySelectorAll("figure")) figure.hidden = figure.dataset.name !== name;
    for (const button of live.querySelectorAll("button[data-tree]")) button.setAttribute("aria-pressed", String(button.dataset.tree === name));
  }
  function choose(name) {
    const figures = [...live.querySelectorAll("figure")], buttons = [...live.querySelectorAll("button[data-tree]")];
    if (!buttons.length) return;
    const kept = (figure) => figure.dataset.name === name && figure.querySelector(".box:not(.dropped)");
    if (!figures.some(kept)) name = buttons[0].dataset.tree;  // the bucket of which most is kept
    open(name);
  }
  live.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-tree]");
    if (!button) return;
    chosen = button.dataset.tree;
    open(chosen);
  });
  choose(null);

  if (!form) return;
  const input = form.elements.filter, error = document.getElementById("filter-error");
  let asked = 0, timer = 0, last = input.value.trim();
  async function plan() {
    const text = input.value.trim();
    clearTimeout(timer);
    if (text === last) return;
    last = text;
    const number = ++asked, token = new URLSearchParams(location.search).get("token");
    live.classList.add("busy");
    let answer;
    try {
      const got = await fetch("/tree?" + new URLSearchParams({ token, filter: text }));
      answer = await got.json();
    } catch (problem) {
      answer = { error: "No answer from pyspark-paimon ui; is it still running?" };
    }
    if (number !== asked) return;
    live.classList.remove("busy");
    error.hidden = !answer.error;
    error.textContent = answer.error || "";
    input.setAttribute("aria-invalid", String(Boolean(answer.error)));
    if (answer.html !== undefined) {
      live.innerHTML = answer.html;
      choose(chosen);
    }
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); plan(); });
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(plan, 400); });
})();
