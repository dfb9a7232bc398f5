// Asynchronous updates by board: how many, and how old they were, as a distribution and never as a mean alone.
import { state } from "./state.js";
import { count, element } from "./words.js";

const MOST_AGES = 8;
const NAMES = ["updates", "samples", "too old", "behind", "versions old \u00d7 updates"];

export function draw() {
  const pushes = Object.entries(state.fleet.pushes ?? {});
  document.getElementById("updates").hidden = !pushes.length;
  const body = document.querySelector("#update-table tbody");
  while (body.rows.length > pushes.length) body.deleteRow(-1);
  pushes.forEach(([board, row], i) => {
    const line = body.rows[i] ?? newRow(body);
    [board, ...cells(row)].forEach((text, j) => { if (line.cells[j].textContent !== text) line.cells[j].textContent = text; });
  });
}

function newRow(body) {
  const row = body.insertRow();
  row.append(element("th", "", { scope: "row" }));
  NAMES.forEach((name, i) => row.append(element("td", "", { "data-name": name, class: i < 4 ? "n" : "" })));
  return row;
}

function cells(row) {
  return [count(row.updates), count(row.samples), row.dropped ? count(row.dropped) : "", count(row.behind), distribution(row.staleness)];
}

function distribution(staleness) {
  const ages = Object.entries(staleness ?? {}).map(([age, n]) => [Number(age), n]).sort(([a], [b]) => a - b);
  if (!ages.length) return "none";
  if (ages.length <= MOST_AGES) return ages.map(([age, n]) => `${age} \u00d7${count(n)}`).join(", ");
  const marks = [0.25, 0.5, 0.75].map((part) => quantile(ages, part));
  return `${ages[0][0]} | ${marks.join(" | ")} | ${ages.at(-1)[0]} (least, quartiles, greatest)`;
}

function quantile(ages, part) {
  const total = ages.reduce((sum, [, n]) => sum + n, 0);
  let passed = 0;
  return ages.find(([, n]) => (passed += n) >= part * total)[0];
}
