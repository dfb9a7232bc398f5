// Headline, facts, alerts and the table of boards. Elements stay, only texts that changed are set.
import { isAsynchronous, state } from "./state.js";
import { badge, count, duration, element, figure, joulesByBasis, percent } from "./words.js";

const MOST_ROWS = 100;
const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export function draw() {
  headline();
  facts();
  alerts();
  boards();
  announce();
}

function headline() {
  const { fleet, status } = state;
  const run = status.run;
  set(document.getElementById("fleet-name"), status.host ? `· ${status.host}` : "");
  let text = state.run ? `no run is going on; what is shown is of run ${state.run}` : "no run is going on";
  if (status.preparing) text = `run ${status.preparing} is being prepared`;
  else if (run) text = `run ${run.run}: ${fleet.phase ?? run.phase}, ${state.called} ${fleet.round} of ${fleet.rounds}`;
  const waiting = (fleet.waiting ?? []).map((one) => `${one.board} (${one.what})`);
  if (waiting.length) text += `, waits for ${waiting.slice(0, 3).join(", ")}${waiting.length > 3 ? " …" : ""}`;
  set(document.getElementById("headline"), text);
  const broken = state.connected ? state.behind : "the connection to the coordinator is lost; trying again";
  set(document.getElementById("stream"), broken);
  document.title = run ? `${run.run} ${fleet.round}/${fleet.rounds} · edged` : "edged";
}

let announced = { round: 0, at: 0 };

// For who does not see the page: a finished round in a sentence, not more often than can be listened to.
function announce() {
  const last = state.rounds.at(-1);
  const now = Date.now();
  if (!last || last.round === announced.round || now - announced.at < 15000) return;
  announced = { round: last.round, at: now };
  const joules = joulesByBasis(last.joules_by_basis, last.joules_unknown_of);
  set(document.getElementById("announce"), `${state.called} ${last.round} is over: ${took(last)}, ${joules}`);
}

const took = (row) => (isAsynchronous() ? `${duration(row.wall_seconds)} in all` : `makespan ${duration(row.makespan_seconds)}`);

function facts() {
  for (const place of document.querySelectorAll(".called")) set(place, state.called);
  const { fleet, rounds, status } = state;
  const last = rounds.at(-1);
  const free = isAsynchronous();
  const up = [...state.boards.values()].filter((row) => row.link === "up");
  const total = totalJoules();
  const rows = [
    [state.called, fleet.round ? `${fleet.round} of ${fleet.rounds}` : "none", status.run ? `${count(status.run.accepted)} of ${count(status.run.target)} samples` : ""],
    ["policy", fleet.policy || "none", fleet.w_e === null || fleet.w_e === undefined ? "" : `w_t ${figure(fleet.w_t)}, w_e ${figure(fleet.w_e)}`],
    free ? [`last ${state.called}`, duration(last?.wall_seconds), "in all"] : ["makespan", duration(last?.makespan_seconds), last?.longest ? `longest: ${last.longest}` : ""],
    ["waiting", percent(last?.waiting_share), free ? "of the boards' time" : "of the boards' time until the longest is done"],
    [`joules, last ${state.called}`, joulesByBasis(last?.joules_by_basis, last?.joules_unknown_of), "computing"],
    ["joules so far", total.text, total.note],
    ["watts now", wattsNow(), ""],
    ["boards", `${up.length} of ${state.boards.size}`, "connected"],
  ];
  const list = document.getElementById("facts");
  rows.forEach(([name, value, note], i) => {
    if (!list.children[i]) {
      const box = element("div");
      box.append(element("dt"), element("dd"));
      box.lastChild.append(element("span"), element("small"));
      list.append(box);
    }
    const box = list.children[i];
    set(box.children[0], name);
    set(box.children[1].children[0], value);
    set(box.children[1].children[1], note);
  });
  set(document.getElementById("reason"), fleet.reason ? `Why these shares: ${fleet.reason}` : "");
}

function totalJoules() {
  const sums = {};
  const without = new Set();
  for (const row of state.rounds) {
    for (const [basis, joules] of Object.entries(row.joules_by_basis)) sums[basis] = (sums[basis] ?? 0) + joules;
    row.joules_unknown_of.forEach((board) => without.add(board));
  }
  const first = state.rounds[0]?.round ?? 1;
  const note = first > 1 ? `computing, since ${state.called} ${first}` : "computing";
  return { text: joulesByBasis(sums, [...without]), note };
}

function wattsNow() {
  const sums = {};
  for (const [board, power] of state.watts) {
    if (state.boards.get(board)?.link !== "up" || power.watts === null) continue;
    sums[power.basis] = (sums[power.basis] ?? 0) + power.watts;
  }
  return Object.entries(sums).map(([basis, watts]) => `${figure(watts)} W ${basis}`).join(" + ") || "?";
}

function alerts() {
  const found = [...(state.status.alerts ?? [])];
  for (const name of ["problem", "failure"]) if (state.status[name]) found.push({ text: state.status[name], way_out: "" });
  const section = document.getElementById("alerts");
  section.hidden = !found.length;
  const texts = found.map((alert) => (alert.way_out ? `${alert.text} (${alert.way_out})` : alert.text));
  const list = document.getElementById("alert-list");
  if ([...list.children].map((item) => item.textContent).join("\n") === texts.join("\n")) return;
  list.replaceChildren(...texts.map((text) => element("li", text)));
}

const NAMES = ["doing", "share", "done", "watts", "seconds", "joules", "joules are", "wait", "J/sample", "cost", "°C"];

function boards() {
  const body = document.querySelector("#board-table tbody");
  const names = [...state.boards.keys()].sort();
  const shown = names.slice(0, MOST_ROWS);
  while (body.rows.length > shown.length) body.deleteRow(-1);
  shown.forEach((name, i) => {
    const row = body.rows[i] ?? newRow(body);
    set(row.cells[0], name);
    cells(name).forEach((text, j) => { if (j !== 6) set(row.cells[j + 1], text); });
    basisOf(name, row.cells[7]);
  });
  const rest = names.length - shown.length;
  set(document.getElementById("more-boards"), rest > 0 ? `and ${rest} more; /api/state has all of them` : "");
}

function newRow(body) {
  const row = body.insertRow();
  row.append(element("th", "", { scope: "row" }));
  NAMES.forEach((name, i) => row.append(element("td", "", { "data-name": name, class: i === 0 || i === 6 ? "" : "n" })));
  return row;
}

function lastCell(name) {
  const last = state.rounds.at(-1);
  return last ? { last, cell: state.cells.get(name)?.get(last.round) } : {};
}

function waited(cell, last) {
  if (isAsynchronous()) return cell.parts?.wait.seconds;
  return cell.seconds !== null && last.makespan_seconds !== null ? Math.max(0, last.makespan_seconds - cell.seconds) : null;
}

function cells(name) {
  const row = state.boards.get(name);
  const power = state.watts.get(name);
  const { last, cell } = lastCell(name);
  const wait = cell ? waited(cell, last) : null;
  const doing = row.lack || (row.link === "up" ? row.phase ?? "" : `link ${row.link}`);
  const throttled = power?.throttled?.length ? `, ${power.throttled.join(", ")}` : "";
  return [
    doing + throttled, count(row.samples), count(row.samples_done), row.link === "up" ? figure(power?.watts) : "",
    cell ? duration(cell.seconds) : "", cell ? figure(cell.joules) : "", "", cell ? duration(wait) : "",
    figure(row.joules_per_sample), row.cost === null || row.cost === undefined ? "" : figure(row.cost),
    power?.celsius === null || power?.celsius === undefined ? "" : figure(power.celsius),
  ];
}

function basisOf(name, place) {
  const { cell } = lastCell(name);
  const basis = cell?.basis || state.boards.get(name).basis || "";
  const why = cell?.joules_reason ?? (basis ? "" : "this board has no energy sensor");
  const key = `${basis}\n${why}`;
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.replaceChildren(badge(basis, why));
  if (why) place.append(element("div", why, { class: "quiet" }));
}
