// How a chart looks, in the page's own colours; the library comes from the installed plotly.
// Okabe and Ito's colours, told apart with any colour vision; lines differ in dash where colour alone would carry it.
export const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#7f7f7f", "#5f4bb6", "#44aa99", "#aa4466", "#667722", "#999999"];
export const colour = (i) => PALETTE[i % PALETTE.length];

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), quiet: of("quiet"), grid: of("grid"), panel: of("panel") };
}

export function empty(id, text) {
  const place = document.getElementById(id);
  if (place.dataset.drawn) { window.Plotly.purge(place); delete place.dataset.drawn; }
  place.classList.add("empty");
  place.removeAttribute("role");
  if (place.textContent !== text) place.textContent = text;
}

export function show(id, traces, layout) {
  const place = document.getElementById(id);
  if (!place.dataset.drawn) { place.textContent = ""; place.classList.remove("empty"); place.dataset.drawn = "yes"; }
  const { ink, quiet, grid } = theme();
  const axis = (own = {}) => ({ gridcolor: grid, zerolinecolor: grid, tickfont: { color: quiet }, automargin: true, ...own, title: { font: { size: 11, color: quiet }, ...own.title } });
  const whole = {
    ...layout, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 11 }, margin: { l: 10, r: 10, t: 8, b: 10 }, uirevision: "kept", hovermode: "closest",
    legend: { orientation: "h", y: -0.32, font: { size: 10 } }, showlegend: layout.showlegend ?? true,
  };
  if (layout.yaxis2) whole.yaxis2 = axis(layout.yaxis2);
  window.Plotly.react(place, traces, whole, { displayModeBar: false, responsive: true });
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", described(place, traces));
}

// A chart in words, for who does not see it; the tables have the same figures.
function described(place, traces) {
  const title = place.parentElement.querySelector("figcaption").textContent.trim().replace(/\s+/g, " ");
  const last = traces.filter((trace) => trace.name).slice(0, 12).map((trace) => {
    const value = [...trace.y].reverse().find((y) => y !== null && y !== undefined);
    return `${trace.name} ${Number.isFinite(value) ? Number(value.toPrecision(3)) : "unknown"}`;
  });
  return `${title}. Newest: ${last.join(", ")}`;
}
