// Figures as people read them. What is not known is "?", never 0.
export const UNKNOWN = "?";

export function figure(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** (digits - 1)) return Math.round(value).toLocaleString("en");
  const decimals = Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  return value.toFixed(decimals);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const percent = (share) => (share === null || share === undefined ? UNKNOWN : `${(100 * share).toFixed(1)} %`);
export const count = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en"));

// An element with text in it: nothing from outside is ever read as HTML.
export function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const BASES = ["measured", "calibrated", "estimated", "emulated"];

export function badge(basis, why = "") {
  const known = BASES.includes(basis);
  const made = element("span", basis || "unknown", { class: `basis ${known ? basis : "unknown"}` });
  if (why) made.title = why;
  return made;
}

export function joulesByBasis(byBasis, unknownOf = []) {
  const parts = Object.entries(byBasis || {}).map(([basis, joules]) => `${figure(joules)} J ${basis}`);
  if (unknownOf.length) parts.push(`unknown of ${unknownOf.join(", ")}`);
  return parts.join(" + ") || UNKNOWN;
}

// The charts' library reads tags in names and texts.
export const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
