// The slider: what a weight would bring is asked for while it moves, and applied only by the button.
import { state } from "./state.js";
import { badge, duration, figure } from "./words.js";

const at = (id) => document.getElementById(id);
let asked = 0;
let timer = 0;

export function begin() {
  at("w-e").addEventListener("input", () => { show(); clearTimeout(timer); timer = setTimeout(preview, 120); });
  at("apply").addEventListener("click", apply);
  at("undo").addEventListener("click", () => { at("w-e").value = state.fleet.w_e ?? 0; show(); preview(); });
}

// The fleet's own weight moved: the slider follows, unless somebody is at it.
export function follow() {
  const present = state.fleet.w_e;
  const slider = at("w-e");
  slider.disabled = present === null || present === undefined || !state.status.run || state.fleet.phase === "done";
  if (present !== slider.dataset.present && String(present) !== slider.dataset.present) {
    slider.dataset.present = String(present);
    if (document.activeElement !== slider && Number.isFinite(present)) slider.value = present;
    preview();
  }
  show();
}

export function preview() {
  const slider = at("w-e");
  if (slider.disabled) return clear("no run is going on");
  const number = ++asked;
  fetch(`api/preview?w_e=${encodeURIComponent(slider.value)}`)
    .then(async (answer) => ({ ok: answer.ok, found: await answer.json() }))
    .then(({ ok, found }) => {
      if (number !== asked) return;
      if (!ok) return clear(found.error);
      at("now-seconds").textContent = duration(found.present_seconds);
      at("now-joules").textContent = figure(found.present_joules);
      at("would-seconds").textContent = duration(found.seconds);
      at("would-joules").textContent = figure(found.joules);
      at("would-text").textContent = words(found);
      for (const place of document.querySelectorAll("#would .bases")) place.replaceChildren(...found.bases.map((basis) => badge(basis)));
    })
    .catch(() => clear("the coordinator does not answer"));
}

function words(found) {
  if (!found.used) return `policy ${state.fleet.policy} does not use weights`;
  const parts = [found.text];
  if (found.joules_reason) parts.push(`joules: ${found.joules_reason}`);
  if (found.seconds && found.present_seconds && found.changed) {
    const time = 100 * (found.seconds / found.present_seconds - 1);
    const energy = found.joules && found.present_joules ? 100 * (found.joules / found.present_joules - 1) : null;
    const signed = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(1)} %`;
    parts.unshift(`makespan ${signed(time)}${energy === null ? "" : `, joules ${signed(energy)}`}`);
  } else if (!found.changed) parts.unshift("shares would stay as they are");
  return [...parts, ...found.notes].filter(Boolean).join("; ");
}

function clear(text) {
  for (const id of ["now-seconds", "now-joules", "would-seconds", "would-joules"]) at(id).textContent = "?";
  at("would-text").textContent = text;
  for (const place of document.querySelectorAll("#would .bases")) place.replaceChildren();
}

function show() {
  const slider = at("w-e");
  const value = Number(slider.value);
  at("w-e-value").textContent = value.toFixed(2);
  slider.setAttribute("aria-valuetext", `w e ${value.toFixed(2)}, w t ${(1 - value).toFixed(2)}`);
  const same = Math.abs(value - (state.fleet.w_e ?? 0)) < 1e-9;
  at("apply").disabled = at("undo").disabled = same || slider.disabled;
}

async function apply() {
  at("apply").disabled = true;
  const body = JSON.stringify({ w_e: Number(at("w-e").value) });
  try {
    const answer = await fetch("api/weights", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const found = await answer.json();
    at("applied").textContent = answer.ok ? found.text : `not changed: ${found.error}`;
    if (answer.ok) { state.fleet.w_e = found.w_e; state.fleet.w_t = found.w_t; at("w-e").dataset.present = String(found.w_e); }
  } catch {
    at("applied").textContent = "not changed: the coordinator does not answer";
  }
  show();
}
