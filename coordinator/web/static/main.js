// Loads what is known, follows the event stream, draws at most a few times a second. Nothing is kept beyond state.js.
import * as charts from "./charts.js";
import { load, loadRounds, state, takeBoards, takeRows, takeWatts } from "./state.js";
import { draw } from "./tables.js";
import * as tune from "./tune.js";
import * as updates from "./updates.js";

const DRAW_MS = 200;
const CHART_MS = 1000;
let dirty = true;
let events = 0;

async function json(path) {
  const answer = await fetch(path);
  if (answer.status === 401) { location.href = "login"; throw new Error("a token is needed"); }
  if (!answer.ok) throw new Error((await answer.json()).error ?? answer.statusText);
  return answer.json();
}

async function reload() {
  const [found, series] = await Promise.all([json("api/state"), json("api/rounds")]);
  load(found, series);
  charts.changed("rounds");
  charts.changed("watts");
  dirty = true;
  tune.follow();
}

function listen() {
  const stream = new EventSource("api/events");
  const on = (name, take) => stream.addEventListener(name, (event) => {
    events += 1;
    state.behind = "";
    take(JSON.parse(event.data));
    dirty = true;
    document.body.dataset.events = String(events);
  });
  stream.onopen = () => { state.connected = true; reload().catch(fail); };
  stream.onerror = () => { state.connected = false; dirty = true; };
  on("watts", (fresh) => { takeWatts(fresh); charts.changed("watts"); });
  on("state", (fleet) => { state.fleet = fleet; tune.follow(); });
  on("status", (status) => { state.status = status; tune.follow(); });
  on("boards", takeBoards);
  on("rows", (added) => {
    takeRows(added);
    charts.changed("rounds");
    if (added.round) tune.preview();
  });
  on("begun", () => json("api/rounds").then(loadRounds).then(() => charts.changed("rounds")).catch(fail));
  on("finished", () => reload().catch(fail));
  on("failed", () => reload().catch(fail));
  on("alert", () => {});
  on("behind", (text) => { state.behind = text; });
}

function fail(error) {
  state.behind = String(error.message ?? error);
  dirty = true;
}

tune.begin();
charts.begin(json);
listen();
setInterval(() => {
  if (!dirty || document.hidden) return;
  dirty = false;
  draw();
  updates.draw();
  document.body.dataset.drawn = "yes";
}, DRAW_MS);
setInterval(() => { if (!document.hidden) charts.draw(); }, CHART_MS);
