// Which chart shows what. How the library draws it is plots.js; a chart is drawn when what it shows has changed.
import { advise, pareto } from "./pareto.js";
import { PALETTE, colour, empty, theme, show } from "./plots.js";
import { isAsynchronous, state } from "./state.js";
import { figure, plain } from "./words.js";

const MOST_LINES = 12;
const MOST_PARTS = 60;
const stale = { watts: true, rounds: true };

export const changed = (what) => { stale[what] = true; };

export function begin(json) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => { stale.watts = stale.rounds = true; pareto(); });
  document.getElementById("advise").addEventListener("click", () => advise(json));
}

export function draw() {
  if (!window.Plotly) return;
  if (stale.watts) { stale.watts = false; watts(); }
  if (stale.rounds) {
    stale.rounds = false;
    shares(); makespan(); joules(); perSample(); parts(); headroom(); costs(); loss();
  }
}

// The boards that get a line of their own, by the newest of a figure; the others are added up where that has a meaning.
function lines(of) {
  const names = [...state.cells.keys()].sort();
  if (names.length <= MOST_LINES) return names;
  const last = state.rounds.at(-1)?.round;
  const value = (name) => of(state.cells.get(name)?.get(last) ?? {}) ?? -1;
  return names.sort((a, b) => value(b) - value(a)).slice(0, MOST_LINES).sort();
}

const numbers = () => state.rounds.map((row) => row.round);

function byBoard(id, of, title, extra = {}) {
  const names = lines(of);
  const traces = names.map((name, i) => ({
    name: plain(name), x: numbers(), y: state.rounds.map((row) => of(state.cells.get(name)?.get(row.round) ?? {}) ?? null),
    mode: "lines", line: { color: colour(i), width: 1.8, shape: extra.shape ?? "linear", dash: extra.dash?.(name) ?? "solid" },
  }));
  if (!traces.some((trace) => trace.y.some((y) => y !== null))) return empty(id, extra.without ?? `no ${state.called} is over yet`);
  show(id, traces, { yaxis: { title: { text: title }, rangemode: "tozero" }, xaxis: { title: { text: state.called } }, shapes: extra.shapes });
}

function watts() {
  const now = Date.now() / 1000;
  const ranked = [...state.track].filter(([, track]) => track.t.length && now - track.t.at(-1) < 300);
  const mean = (track) => track.watts.reduce((sum, value) => sum + (value ?? 0), 0) / track.watts.length;
  ranked.sort((a, b) => mean(b[1]) - mean(a[1]));
  const own = ranked.slice(0, MOST_LINES).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  const seconds = Array.from({ length: 120 }, (_, i) => i - 119);
  const traces = own.map(([name, track], i) => trace(name, [track], i));
  const rest = ranked.slice(MOST_LINES).map(([, track]) => track);
  if (rest.length) traces.push(trace(`${rest.length} others`, rest, MOST_LINES));
  function trace(name, tracks, i) {
    const y = seconds.map(() => null);
    for (const track of tracks) {
      track.t.forEach((t, k) => {
        const slot = Math.floor(t - now) + 119;
        if (slot >= 0 && slot < 120 && track.watts[k] !== null) y[slot] = tracks.length > 1 ? (y[slot] ?? 0) + track.watts[k] : track.watts[k];
      });
    }
    // Telemetry comes once a second, not on the second; after five silent ones a board draws nothing known.
    for (let slot = 1, gap = 0; slot < 120; slot += 1) {
      gap = y[slot] === null ? gap + 1 : 0;
      if (gap && gap <= 5 && y[slot - 1] !== null) y[slot] = y[slot - 1];
    }
    return { name: plain(name), x: seconds, y, stackgroup: "all", mode: "lines", line: { width: 0.5, color: colour(i) }, hoveron: "points" };
  }
  const bases = [...new Set([...state.watts.values()].map((power) => power.basis || "unknown"))].sort();
  document.getElementById("watts-basis").textContent = bases.join(", ");
  if (!traces.length) return empty("chart-watts", "no board has told its watts yet");
  show("chart-watts", traces, { yaxis: { title: { text: "watts" }, rangemode: "tozero" }, xaxis: { title: { text: "seconds ago" }, range: [-119, 0] } });
}

function tuned() {
  const marks = state.changes.filter((change) => change.what === "weights" && change.from_round >= (state.rounds[0]?.round ?? 1));
  return marks.map((change) => ({
    type: "line", yref: "paper", y0: 0, y1: 1, x0: change.from_round, x1: change.from_round,
    line: { dash: "dash", width: 1, color: theme().quiet },
    label: { text: `w_e ${figure(change.w_e)}`, textposition: "end", textangle: 0, xanchor: "left", font: { size: 10, color: theme().quiet } },
  }));
}

const shares = () => byBoard("chart-shares", (cell) => cell.samples, "samples", { shape: "hv", shapes: tuned() });
const costs = () => byBoard("chart-costs", (cell) => cell.cost, "c", { without: "this policy has no costs" });

function perSample() {
  const dash = (name) => (["measured", "calibrated"].includes(state.cells.get(name)?.get(state.rounds.at(-1)?.round)?.basis) ? "solid" : "dot");
  byBoard("chart-per-sample", (cell) => (cell.joules !== null && cell.joules !== undefined && cell.samples ? cell.joules / cell.samples : null),
    "J/sample", { dash, without: "no joules are known" });
}

function makespan() {
  if (!state.rounds.length) return empty("chart-makespan", `no ${state.called} is over yet`);
  const free = isAsynchronous();
  document.getElementById("makespan-title").textContent = free ? "Seconds in all, and waiting" : "Makespan and waiting";
  const text = state.rounds.map((row) => (free ? "" : plain(`longest: ${row.longest ?? "?"}`)));
  const seconds = state.rounds.map((row) => (free ? row.wall_seconds : row.makespan_seconds));
  show("chart-makespan", [
    { name: free ? "in all" : "makespan", x: numbers(), y: seconds, text, mode: "lines", line: { color: colour(0) } },
    { name: "waiting share", x: numbers(), y: state.rounds.map((row) => row.waiting_share), yaxis: "y2", mode: "lines", line: { color: colour(1), dash: "dot" } },
  ], {
    yaxis: { title: { text: "seconds" }, rangemode: "tozero" }, xaxis: { title: { text: state.called } }, shapes: tuned(),
    yaxis2: { overlaying: "y", side: "right", tickformat: ".0%", rangemode: "tozero", showgrid: false },
  });
}

function joules() {
  const bases = [...new Set(state.rounds.flatMap((row) => Object.keys(row.joules_by_basis)))].sort();
  document.getElementById("joules-basis").textContent = bases.join(", ");
  for (const place of document.querySelectorAll(".all-bases")) place.textContent = bases.join(", ");
  if (!bases.length) return empty("chart-joules", "no joules are known");
  const traces = [];
  bases.forEach((basis, i) => {
    const y = state.rounds.map((row) => row.joules_by_basis[basis] ?? null);
    const spread = state.rounds.map((row) => bound(row.round, basis));
    if (spread.some((value) => value !== null)) {
      const edge = (sign) => y.map((value, k) => (value === null || spread[k] === null ? null : value + sign * spread[k]));
      const hidden = { x: numbers(), mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
      traces.push({ ...hidden, y: edge(-1) }, { ...hidden, y: edge(1), fill: "tonexty", fillcolor: `${colour(i)}33` });
    }
    traces.push({ name: plain(basis), x: numbers(), y, mode: "lines", line: { color: colour(i) } });
  });
  show("chart-joules", traces, { yaxis: { title: { text: "joules" }, rangemode: "tozero" }, xaxis: { title: { text: state.called } }, shapes: tuned() });
}

// Sensors of one kind may err alike, so bounds are added.
function bound(round, basis) {
  let sum = null;
  for (const cells of state.cells.values()) {
    const cell = cells.get(round);
    if (cell?.basis !== basis || cell.joules === null) continue;
    if (cell.uncertainty_joules === null) return null;
    sum = (sum ?? 0) + cell.uncertainty_joules;
  }
  return sum;
}

function parts() {
  const rows = state.rounds.slice(-MOST_PARTS);
  const traces = ["compute", "wait", "communication", "lost", "overhead"].map((part, i) => ({
    name: part, type: "bar", x: rows.map((row) => row.round), marker: { color: PALETTE[i] },
    y: rows.map((row) => {
      const known = [...state.cells.values()].map((cells) => cells.get(row.round)?.parts?.[part]).filter(Boolean);
      if (!known.length || known.some((one) => one.joules === null && one.seconds > 0)) return null;
      return known.reduce((sum, one) => sum + (one.joules ?? 0), 0);
    }),
  }));
  if (!traces.some((trace) => trace.y.some((y) => y !== null))) return empty("chart-parts", "no order is closed yet, or a board's joules are not known");
  show("chart-parts", traces, { barmode: "stack", yaxis: { title: { text: "joules" } }, xaxis: { title: { text: state.called } } });
}

function headroom() {
  const of = (name) => state.rounds.map((row) => row[name]);
  const without = isAsynchronous() ? "not predicted in asynchronous runs" : "not predicted yet: joules of every board are needed";
  if (!of("predicted_joules").some((y) => y !== null)) return empty("chart-headroom", without);
  show("chart-headroom", [
    { name: "shares as decided", x: numbers(), y: of("predicted_joules"), mode: "lines", line: { color: colour(0) } },
    { name: "shares by time alone", x: numbers(), y: of("time_only_joules"), mode: "lines", line: { color: colour(1), dash: "dot" } },
  ], { yaxis: { title: { text: `joules a ${state.called}` } }, xaxis: { title: { text: state.called } } });
}

function loss() {
  const rows = state.rounds.filter((row) => Number.isFinite(row.held_out?.loss));
  if (!rows.length) return empty("chart-loss", state.rounds.at(-1)?.held_out?.error || "nothing is held out, or not measured yet");
  show("chart-loss", [{ name: "loss", x: rows.map((row) => row.round), y: rows.map((row) => row.held_out.loss), mode: "lines", line: { color: colour(0) } }],
    { yaxis: { title: { text: "held-out loss" } }, xaxis: { title: { text: state.called } }, showlegend: false });
}
