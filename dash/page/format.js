"use strict";

// Numbers, times and sizes as text, and elements of the page. Texts of a run only ever become text nodes.

const missing = (x) => x === null || x === undefined || Number.isNaN(x);

// number writes four significant digits.
function number(x) {
  if (missing(x)) return "–";
  const a = Math.abs(x);
  if (a !== 0 && (a < 1e-3 || a >= 1e7)) return Number(x.toPrecision(3)).toExponential().replace("e+", "e");
  if (a >= 1000) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(4)));
}

function scaled(x, base, units) {
  if (missing(x)) return "–";
  let i = 0;
  while (Math.abs(x) >= base && i < units.length - 1) {
    x /= base;
    i++;
  }
  return Number(x.toPrecision(3)) + units[i];
}

const short = (x) => scaled(x, 1000, ["", "K", "M", "B", "T"]);
const bytes = (x) => scaled(x, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const flops = (x) => scaled(x, 1000, ["", " K", " M", " G", " T", " P", " E", " Z"]) + "FLOP";
const percent = (x) => (missing(x) ? "–" : Number((100 * x).toPrecision(3)) + " %");

function duration(s) {
  if (missing(s)) return "–";
  if (s < 1) return Number((1000 * s).toPrecision(3)) + " ms";
  if (s < 60) return Number(s.toPrecision(3)) + " s";
  const m = Math.floor(s / 60);
  if (m < 60) return m + "m" + String(Math.floor(s % 60)).padStart(2, "0") + "s";
  const h = Math.floor(m / 60);
  if (h < 48) return h + "h" + String(m % 60).padStart(2, "0") + "m";
  return Math.floor(h / 24) + "d" + String(h % 24).padStart(2, "0") + "h";
}

// h makes an element with attributes, or properties where a value is no text, and children.
function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "string") e.setAttribute(key, value);
    else e[key] = value;
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
}

// ticks returns round numbers between lo and hi, about so many; with base 1024 round numbers of KiB, MiB …
function ticks(lo, hi, many, log, base) {
  if (log) return logTicks(lo, hi, many);
  if (base) {
    const unit = base ** Math.max(0, Math.floor(Math.log(hi) / Math.log(base)));
    return ticks(lo / unit, hi / unit, many).map((v) => v * unit);
  }
  const rough = (hi - lo) / Math.max(1, many);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough) || unit;
  const list = [];
  for (let k = Math.ceil(lo / step); k * step <= hi * (1 + 1e-12) && list.length < 50; k++) list.push(k * step);
  return list;
}

function logTicks(lo, hi, many) {
  const list = [];
  const decades = Math.log10(hi / lo);
  const factors = decades > many ? [1] : decades > many / 3 ? [1, 3] : [1, 2, 3, 5, 7];
  const skip = Math.max(1, Math.ceil(decades / many));
  for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e += skip) {
    for (const f of factors) {
      const v = f * 10 ** e;
      if (v >= lo && v <= hi) list.push(v);
    }
  }
  return list.length > 1 ? list : ticks(lo, hi, many, false);
}
