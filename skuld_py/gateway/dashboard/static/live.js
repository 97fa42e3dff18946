// Fetches the page again and exchanges the parts that are alive; where nobody is at work in them, and somebody looks.
"use strict";
(() => {
  const EVERY_MS = 3000, KEY = "skuld-live";
  const parts = () => [...document.querySelectorAll("[data-live][id]")];
  const button = document.getElementById("live");

  for (const all of document.querySelectorAll("input[data-all]")) {
    all.addEventListener("change", () => {
      for (const box of document.querySelectorAll(`input[name="${all.dataset.all}"]`)) box.checked = all.checked;
    });
  }

  if (!button || !parts().length) return;
  let isLive = true;
  try { isLive = localStorage.getItem(KEY) !== "off"; } catch { /* then it is not kept */ }
  const show = (words) => {
    button.textContent = words || (isLive ? "live" : "stopped");
    button.setAttribute("aria-pressed", String(isLive));
    button.classList.toggle("bad", Boolean(words));
  };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    isLive = !isLive;
    try { localStorage.setItem(KEY, isLive ? "on" : "off"); } catch { /* as above */ }
    show();
  });

  const isInUse = (part) => {
    const chosen = document.getSelection();
    return part.contains(document.activeElement) || (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode));
  };

  const look = async () => {
    if (!isLive || document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) { show("not answering"); return; }
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const fresh = found.getElementById(part.id);
        if (fresh && !isInUse(part)) {
          const places = [...part.querySelectorAll(".wide")].map((each) => each.scrollLeft);
          part.replaceChildren(...fresh.childNodes);
          part.querySelectorAll(".wide").forEach((each, number) => { each.scrollLeft = places[number] || 0; });
        }
      }
      show();
    } catch { show("not answering"); }
  };
  const again = () => setTimeout(async () => { await look(); again(); }, EVERY_MS);
  again();
})();
