// The page: which charts there are, and what keys and controls do.

const definitions = [
  { title: "Loss", unit: "nats per token", names: ["loss", "val_loss", "val_loss_ema"], smooth: true,
    labels: { loss: "training", val_loss: "validation", val_loss_ema: "validation of the average" } },
  { title: "Validation", unit: "bits per byte", names: ["val_bits_per_byte", "val_bits_per_byte_ema"],
    labels: { val_bits_per_byte: "weights", val_bits_per_byte_ema: "their average" } },
  { title: "Validation by source", unit: "bits per byte", prefix: "source_val_bits_per_byte." },
  { title: "Loss by source", unit: "nats per token", prefix: "source_loss.", smooth: true },
  { title: "Gradient norm", unit: "before clipping", names: ["grad_norm"], log: true, smooth: true },
  { title: "Clip rate", unit: "share of the updates", names: ["clip_rate_recent", "clip_rate"], text: percent, zero: true,
    labels: { clip_rate_recent: "of the last 64", clip_rate: "so far" } },
  { title: "Learning rate", names: ["lr"], zero: true },
  { title: "Speed", unit: "tokens per second", names: ["tokens_per_second"], zero: true },
  { title: "Share of the peak", unit: "of matrix products", names: ["fraction_of_peak"], text: percent, zero: true },
  { title: "Where the time of a step goes", prefix: "phase_seconds.", order: phaseOrder, text: duration, zero: true, stack: true },
  { title: "Memory", unit: "of the process", names: ["rss_bytes"], text: bytes, zero: true, base: 1024 },
  { title: "Gradient norm by layer", unit: "before clipping", prefix: "grad_norms.layers.", heat: true },
  { title: "Gradient norm by group", unit: "before clipping", prefix: "grad_norms.groups.", heat: true },
  { title: "Update over weight by layer", unit: "‖Δw‖/‖w‖", prefix: "update_ratios.layers.", heat: true },
  { title: "Update over weight by group", unit: "‖Δw‖/‖w‖", prefix: "update_ratios.groups.", heat: true },
  { title: "Activation size by layer", unit: "root mean square", prefix: "activation_rms.", heat: true },
  { title: "Loss scale", names: ["loss_scale"], log: true },
  { title: "Saving", unit: "seconds that training stood still", names: ["save_seconds"], text: duration, zero: true },
  { title: "Skipped updates", unit: "share of the steps", names: ["skipped"], text: percent, zero: true, rare: true },
];

const charts = [];
let waiting = false;
let refining = 0; // the timer of a closer look

const claimed = (name) => definitions.some((d) => (d.prefix ? name.startsWith(d.prefix) : d.names.includes(name)));

// define adds charts of numbers that have none: a metric that is new to this page is shown all the same.
function define() {
  for (const i of shown()) {
    for (const name of Object.keys(data.curves[i].series)) {
      if (claimed(name) || definitions.length > 60) continue;
      const dot = name.indexOf(".");
      const title = (dot > 0 ? name.slice(0, dot) : name).replaceAll("_", " ");
      definitions.push(dot > 0 ? { title, prefix: name.slice(0, dot + 1) } : { title, names: [name] });
    }
  }
  for (const d of definitions.slice(charts.length)) {
    const chart = d.heat ? new HeatMap(d) : new Chart(d);
    charts.push(chart);
    byId("charts").append(chart.element);
  }
}

// redraw draws the charts before the next frame, once.
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawCharts();
  });
}

// drawCharts draws the charts in sight, and so many pixels above and below.
function drawCharts(beyond = 0) {
  byId("reset").disabled = ui.zoom === null;
  for (const chart of charts) chart.element.hidden = chart.empty;
  const seen = charts.filter((chart) => !chart.element.hidden);
  for (const chart of seen) chart.measure();
  for (const chart of seen) if (!chart.drawn || chart.near(beyond)) chart.draw();
}

function setCursor(at) {
  ui.cursor = at;
  redraw();
}

function setZoom(zoom) {
  ui.zoom = zoom;
  redraw();
  clearTimeout(refining);
  if (zoom) refining = setTimeout(() => refineAll(zoom), 200);
}

// refineAll reads the stretch that is shown again, of all runs.
function refineAll(zoom) {
  for (const i of shown()) {
    const x = data.curves[i].x;
    const list = x[ui.axis];
    const from = x.step[Math.max(0, below(list, zoom[0]))], to = x.step[Math.max(0, nearest(list, zoom[1]))];
    refine(i, from, to, zoom).then(redraw, () => {}); // the coarse points remain
  }
}

function setAxis(axis) {
  ui.axis = axis;
  ui.zoom = ui.cursor = null;
  byId("axis").value = axis;
  redraw();
}

function toggleRun(i) {
  if (i >= data.view.runs.length) return;
  if (!ui.hidden.delete(i)) ui.hidden.add(i);
  drawPanels();
  redraw();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch { /* a report opened as a file may have no storage */ }
  readColours();
  drawnPanels.forEach((p) => (p.text = ""));
  drawPanels();
  redraw();
}

const dark = () => {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const actions = {
  x: () => {
    const list = Object.keys(axes);
    setAxis(list[(list.indexOf(ui.axis) + 1) % list.length]);
  },
  g: () => byId("logx").click(),
  s: () => {
    const next = ui.smooth === 0 ? 0.8 : ui.smooth < 0.9 ? 0.95 : 0;
    byId("smooth").value = String(next);
    ui.smooth = next;
    redraw();
  },
  0: () => setZoom(null),
  d: () => setTheme(dark() ? "light" : "dark"),
  "?": () => byId("keys").showModal(),
};

function listen() {
  for (const [value, a] of Object.entries(axes)) byId("axis").append(h("option", { value }, a.label));
  byId("axis").onchange = (e) => setAxis(e.target.value);
  byId("logx").onchange = (e) => {
    ui.logx = e.target.checked;
    redraw();
  };
  byId("smooth").oninput = (e) => {
    ui.smooth = Number(e.target.value);
    redraw();
  };
  byId("reset").onclick = () => setZoom(null);
  byId("theme").onclick = actions.d;
  byId("help").onclick = actions["?"];
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT)$/.test(e.target.tagName) || byId("keys").open) return;
    if (/^[1-9]$/.test(e.key)) toggleRun(Number(e.key) - 1);
    else if (actions[e.key]) actions[e.key]();
    else return;
    e.preventDefault();
  });
  document.addEventListener("scroll", () => drawCharts(innerHeight / 2), { passive: true });
  window.addEventListener("beforeprint", () => drawCharts(Infinity));
  new ResizeObserver(redraw).observe(byId("charts"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
}

// changed shows what an update has brought.
function changed(fault) {
  const v = data.view;
  const from = byId("record") ? "a report of " : "";
  byId("status").textContent = fault ? "no answer: " + fault.message
    : v.runs.length === 1 ? `${from}${v.runs[0].name}, ${v.time.slice(0, 19).replace("T", " ")} UTC`
    : `${from}${v.runs.length} runs, ${(v.time || "").slice(0, 19).replace("T", " ")} UTC`;
  if (v.runs.length === 0) return;
  document.title = v.runs.map((r) => r.steps ? `${r.name} ${percent(r.step / r.steps)}` : r.name).join(", ") + " · anneal";
  define();
  drawPanels();
  drawCharts();
}

try {
  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* no storage */ }
readColours();
listen();
follow(changed);
