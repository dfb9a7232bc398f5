// What the page knows: one object, bounded in every direction, filled from /api and the event stream.
export const MOST_ROUNDS = 1000;
const WATTS_SECONDS = 300;
const MOST_CHANGES = 200;
const CELLS = 200_000;

export const state = {
  fleet: {}, status: { alerts: [] }, boards: new Map(), watts: new Map(),
  run: "", settings: {}, called: "round", rounds: [], cells: new Map(), changes: [],
  track: new Map(), connected: false, behind: "",
};

export function load(found, series) {
  state.fleet = found.fleet;
  state.status = found.status;
  state.boards = new Map(found.boards.map((row) => [row.board, row]));
  takeWatts(found.watts);
  loadRounds(series);
}

export function loadRounds(series) {
  state.run = series.run;
  state.settings = series.settings;
  state.called = series.called;
  state.rounds = series.rounds;
  state.changes = series.changes;
  state.cells = new Map();
  for (const [board, cells] of Object.entries(series.boards)) {
    const own = new Map();
    cells.forEach((cell, i) => { if (cell) own.set(series.rounds[i].round, cell); });
    state.cells.set(board, own);
  }
}

export function takeWatts(fresh) {
  const now = Date.now() / 1000;
  for (const [board, power] of Object.entries(fresh)) {
    state.watts.set(board, power);
    if (!state.track.has(board)) state.track.set(board, { t: [], watts: [] });
    const track = state.track.get(board);
    track.t.push(now);
    track.watts.push(power.watts);
    if (track.t.length > 2 * WATTS_SECONDS || now - track.t[0] > 1.2 * WATTS_SECONDS) {
      let first = 0;
      while (first < track.t.length && now - track.t[first] > WATTS_SECONDS) first += 1;
      first = Math.max(first, track.t.length - WATTS_SECONDS);
      track.t.splice(0, first);
      track.watts.splice(0, first);
    }
  }
}

export function takeRows(added) {
  if (added.round) {
    const { boards, ...round } = added.round;
    state.rounds = state.rounds.filter((row) => row.round !== round.round);
    state.rounds.push(round);
    for (const [board, cell] of Object.entries(boards)) cellsOf(board).set(round.round, cell);
    trim();
  }
  if (added.closed) {
    const cell = cellsOf(added.closed.board).get(added.closed.round);
    if (cell) cell.parts = added.closed.parts;
  }
  if (added.evaluation) {
    const row = state.rounds.find((one) => one.round === added.evaluation.round);
    if (row) row.held_out = added.evaluation;
  }
  if (added.change) state.changes = [...state.changes, added.change].slice(-MOST_CHANGES);
}

// Nobody waits for the longest board: there is no makespan.
export const isAsynchronous = () => state.settings.regime === "asp";

export function takeBoards(changed) {
  for (const [board, row] of Object.entries(changed)) state.boards.set(board, row);
}

function cellsOf(board) {
  if (!state.cells.has(board)) state.cells.set(board, new Map());
  return state.cells.get(board);
}

function trim() {
  const most = Math.max(10, Math.min(MOST_ROUNDS, Math.floor(CELLS / Math.max(1, state.cells.size))));
  const gone = state.rounds.splice(0, Math.max(0, state.rounds.length - most));
  for (const row of gone) for (const cells of state.cells.values()) cells.delete(row.round);
}
