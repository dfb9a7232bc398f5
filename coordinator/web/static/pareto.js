// Joules against makespan for other settings, as `edged-coordinator advise` finds them, with the present one.
import { colour, empty, show, theme } from "./plots.js";
import { duration, figure, plain } from "./words.js";

let advice = null;

export async function advise(json) {
  const button = document.getElementById("advise");
  const text = document.getElementById("advice-text");
  button.disabled = true;
  text.textContent = "working it out; this takes some seconds of another core …";
  try {
    advice = await json("api/advice");
    text.textContent = `${advice.sentence} (run ${advice.run}; intervals hold 90 % of the fleets that could have given its readings)`;
    pareto();
  } catch (error) {
    text.textContent = `no advice: ${error.message}`;
  }
  button.disabled = false;
}

export function pareto() {
  if (!advice || !window.Plotly) return;
  const known = advice.predictions.filter((one) => one.joules);
  if (!known.length) return empty("chart-pareto", advice.lacks || "no joules are known");
  const range = (of) => ({ type: "data", symmetric: false, array: known.map((p) => of(p).high - of(p).middle), arrayminus: known.map((p) => of(p).middle - of(p).low), thickness: 1, color: theme().quiet });
  const [present, ...others] = known;
  const named = new Set([present.setting.label, advice.best === null ? "" : advice.predictions[advice.best].setting.label]);
  const dots = (name, rows, look) => ({
    name, x: rows.map((p) => p.makespan_seconds.middle), y: rows.map((p) => p.joules.middle), mode: "markers+text", textposition: "top center",
    text: rows.map((p) => (named.has(p.setting.label) ? plain(p.setting.label) : "")), marker: look, textfont: { size: 10 },
    hovertext: rows.map((p) => plain(`${p.setting.label}: ${duration(p.makespan_seconds.middle)}, ${figure(p.joules.middle)} J`)), hoverinfo: "text",
  });
  const traces = [
    { name: "the least joules for each makespan", x: advice.front.map((p) => p[0]), y: advice.front.map((p) => p[1]), mode: "lines", line: { color: colour(7), dash: "dot" } },
    { ...dots("other settings", others, { color: colour(0), size: 7 }) },
    { ...dots("present", [present], { color: colour(5), size: 12, symbol: "diamond" }) },
  ];
  traces.push({ name: "90 %", x: known.map((p) => p.makespan_seconds.middle), y: known.map((p) => p.joules.middle), mode: "markers", marker: { size: 1, color: theme().quiet }, error_x: range((p) => p.makespan_seconds), error_y: range((p) => p.joules), hoverinfo: "skip" });
  show("chart-pareto", traces, { xaxis: { title: { text: "makespan, seconds" } }, yaxis: { title: { text: "joules a round" } } });
}
