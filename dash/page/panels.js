// What is no chart: the runs at a glance, alerts, times of a step, checkpoints, ranks, configurations, the journal.

const phaseOrder = ["reading", "forward", "head", "backward", "summing", "update"];

const drawnPanels = new Map();

// panel draws a part of the page again if what it shows has changed.
function panel(host, key, shows, build) {
  const text = JSON.stringify(shows);
  const old = drawnPanels.get(key);
  if (old && old.text === text) return;
  const open = old ? [...old.element.querySelectorAll("details")].map((d) => d.open) : [];
  const element = build();
  if (element) [...element.querySelectorAll("details")].forEach((d, i) => (d.open = !!open[i]));
  const now = element || h("div", { hidden: true });
  if (old) old.element.replaceWith(now);
  else host.append(now);
  drawnPanels.set(key, { text, element: now });
}

function card(title, ...children) {
  return h("div", { class: "card" }, h("h2", {}, title), ...children);
}

function table(head, rows) {
  const cell = (tag) => (v, i) => h(tag, { class: head[i].text ? "text" : "" }, v);
  return h("div", { class: "scroll", tabIndex: 0 }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((c) => c.name).map(cell("th")))),
    h("tbody", {}, rows.map((r) => h("tr", {}, r.map(cell("td")))))));
}

const left = (name) => ({ name, text: true });
const right = (name) => ({ name });

function drawPanels() {
  const v = data.view;
  v.runs.forEach((r, i) => panel(byId("runs"), "run" + i, [r, ui.hidden.has(i), v.time], () => runCard(r, i)));
  const alerts = v.runs.flatMap((r) => (r.error ? [{ kind: "error", step: r.step, text: r.error }] : [])
    .concat(r.alerts || []).map((a) => ({ ...a, run: r.name })));
  panel(byId("alerts"), "alerts", alerts, () => h("div", {}, alerts.slice(-20).map((a) => alertLine(a, v.runs.length > 1))));
  const host = byId("details");
  v.runs.forEach((r, i) => {
    const of = v.runs.length > 1 ? " · " + r.name : "";
    const means = phaseMeans(i);
    panel(host, "samples" + i, r.samples, () => samplesCard(r, of));
    panel(host, "time" + i, [r.timing, means], () => timeCard(r, means, of));
    panel(host, "memory" + i, r.timing && r.timing.memory, () => memoryCard(r, of));
    panel(host, "ckpt" + i, r.checkpoints, () => checkpointCard(r, of));
    panel(host, "rank" + i, r.ranks, () => rankCard(r, of));
    panel(host, "journal" + i, r.journal, () => journalCard(r, of));
  });
  panel(host, "configs", v.runs.map((r) => [r.name, r.config, r.differences]), () => configCard(v.runs));
}

const byId = (id) => document.getElementById(id);

function alertLine(a, several) {
  return h("div", { class: "alert " + a.kind }, h("b", {}, a.kind === "nan" ? "NaN" : a.kind),
    ` ${several ? a.run + ", " : ""}step ${number(a.step)}: ${a.text}`);
}

function runCard(r, i) {
  const box = h("input", { type: "checkbox", checked: !ui.hidden.has(i) });
  box.onchange = () => toggleRun(i);
  const swatch = h("span", { class: "swatch" });
  if (data.view.runs.length > 1) swatch.style.borderTopColor = colours.lines[i % colours.lines.length];
  else swatch.hidden = true;
  const state = h("span", { class: "state " + r.state.replace(" ", "-") }, r.state);
  const share = r.steps ? r.step / r.steps : 0;
  const facts = [
    r.steps ? ["step", `${number(r.step)} of ${number(r.steps)} (${percent(share)})`] : ["weights alone", `step ${number(r.step)}`],
    ["training loss", number(r.loss) + " nats/token"],
    ["validation", missing(r.val_loss) ? "–" : `${number(r.val_loss)} nats/token, ${number(r.val_bits_per_byte)} bits/byte at ${number(r.val_step)}`],
    ["speed", number(r.tokens_per_second) + " tokens/s"],
    ["of the peak", percent(r.fraction_of_peak)],
    ["ETA", eta(r)],
    ["trained for", `${duration(r.seconds)}, ${short(r.tokens)} tokens, ${flops(r.flops)}`],
    ["memory", bytes(r.rss_bytes)],
    ["model", `${r.model}, ${short(r.parameters)} parameters`],
    ["on disk", bytes(r.bytes)],
    ["directory", r.dir],
  ];
  if (r.exit && r.exit.code) { // how to continue is beside the checkpoints: the run may have moved since it ended
    const reason = (r.exit.reason || "").replace(/; its state is saved in .*/s, "");
    facts.push(["ended with code", `${r.exit.code}: ${reason}`]);
  }
  if (r.rewound) facts.push(["rewound", number(r.rewound) + " steps"]);
  if (r.read < 1) facts.push(["metrics read", percent(r.read)]);
  const known = r.steps ? facts : facts.filter(([, x]) => !x.startsWith("–")); // weights alone have no speed
  return h("div", { class: data.view.runs.length === 1 ? "card run wide" : "card run" },
    h("h2", {}, state, h("label", {}, box, swatch, r.name)), r.steps ? h("progress", { max: 1, value: share, "aria-label": "progress" }) : null,
    h("dl", { class: "facts" }, known.map(([k, x]) => h("div", { class: x.length > 24 ? "long" : "" }, h("dt", {}, k), h("dd", {}, x)))));
}

function eta(r) {
  if (missing(r.eta_seconds)) return "–";
  const at = new Date(Date.parse(data.view.time) + 1000 * r.eta_seconds);
  const day = r.eta_seconds > 20 * 3600 ? at.toLocaleDateString("en", { month: "short", day: "numeric" }) + " " : "";
  return `${duration(r.eta_seconds)}, at ${day}${at.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false })}`;
}

// phaseMeans returns the mean seconds of each phase over the last hundred points.
function phaseMeans(i) {
  const means = {};
  for (const [name, s] of Object.entries(data.curves[i].series)) {
    if (!name.startsWith("phase_seconds.")) continue;
    const list = s.mean.filter((v) => !missing(v)).slice(-100);
    means[name.slice("phase_seconds.".length)] = list.reduce((a, b) => a + b, 0) / list.length;
  }
  return means;
}

function timeCard(r, means, of) {
  const t = r.timing || {}; // of another version it may have less
  const phases = t.phases || {}, step = t.step_seconds || {}, peak = t.peak_bytes || {};
  const names = phaseOrder.filter((n) => n in means || n in phases);
  if (names.length === 0) return null;
  const done = t.steps > 0; // the run has ended: its own means are of all steps
  const actual = (n) => (done && phases[n] ? phases[n].actual : means[n]);
  const total = done ? step.actual : names.reduce((a, n) => a + (means[n] || 0), 0);
  const off = (p, a) => (missing(p) || missing(a) || a === 0 ? "–" : (p > a ? "+" : "") + percent(p / a - 1));
  const row = (name, p, a, text, share) => [name, text(p), text(a), off(p, a), share];
  const rows = names.map((n) => row(n === "reading" ? "reading (wait for data)" : n, (phases[n] || {}).predicted,
    actual(n), duration, percent(actual(n) / total)));
  rows.push(row("step", step.predicted, total, duration, ""));
  rows.push(row("peak memory", peak.predicted, done ? peak.actual : r.rss_bytes, bytes, ""));
  const why = missing(step.predicted) ? h("p", { class: "note" }, "Times are predicted once ", h("code", {}, "anneal bench machine"), " has measured this machine.") : "";
  return card("Predicted and actual" + of, table([left(""), right("predicted"), right("actual"), right("off"), right("share")], rows), why);
}

// What the model wrote after a step that a slider chooses; the newest, until it is moved.
function samplesCard(r, of) {
  const list = r.samples || [];
  if (list.length === 0) return null;
  const step = h("output", {}), texts = h("div", {});
  const show = (at) => {
    step.textContent = "step " + number(list[at].step);
    texts.replaceChildren(...list[at].texts.map((t) => h("p", { class: "sample" }, h("b", {}, t.prompt), t.text || "(nothing: the text ends)")));
  };
  const newest = list.length - 1, before = list.findIndex((s) => s.step === ui.samples.get(r.dir));
  const slider = h("input", { type: "range", min: "0", max: String(newest), value: String(before < 0 ? newest : before),
    hidden: newest === 0, ariaLabel: "step" });
  slider.oninput = () => {
    const at = Number(slider.value);
    ui.samples.set(r.dir, at === newest ? null : list[at].step);
    show(at);
  };
  show(Number(slider.value));
  return card("What the model writes" + of, h("div", { class: "choose" }, slider, step), texts);
}

function memoryCard(r, of) {
  const parts = ((r.timing && r.timing.memory) || []).filter((p) => p.predicted > 0);
  if (parts.length === 0) return null;
  const all = parts.reduce((sum, p) => sum + p.predicted, 0);
  const bar = h("div", { class: "bar", role: "img", ariaLabel: "shares of the memory" }, parts.map((p, i) => {
    const part = h("span", { title: `${p.name} ${bytes(p.predicted)}` });
    part.style.flexGrow = String(p.predicted);
    part.style.background = colours.lines[i % colours.lines.length];
    return part;
  }));
  const name = (p, i) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.borderTopColor = colours.lines[i % colours.lines.length];
    return h("span", {}, swatch, p.name);
  };
  const rows = parts.map((p, i) => [name(p, i), bytes(p.predicted), p.actual > 0 ? bytes(p.actual) : "–", percent(p.predicted / all)]);
  return card("Memory by kind" + of, bar, table([left(""), right("planned"), right("used"), right("share")], rows));
}

function checkpointCard(r, of) {
  if (!r.checkpoints || r.checkpoints.length === 0) return null;
  const rows = r.checkpoints.map((c) => [number(c.step), short(c.tokens), bytes(c.bytes), c.error || h("code", {}, c.command)]);
  return card("Checkpoints" + of, table([right("step"), right("tokens"), right("size"), left("go on from it")], rows));
}

function rankCard(r, of) {
  if (!r.ranks || r.ranks.length === 0) return null;
  const heads = [right("rank"), left("host"), right("process")];
  const columns = [(k, i) => String(i), (k) => k.host, (k) => String(k.pid)];
  if (r.ranks.some((k) => k.place || k.waits)) { // ranks of one process write none
    heads.push(left("place"), right("step"), left("waits for"));
    columns.push((k) => k.place || "", (k) => (k.waits ? number(k.step) : ""), (k) => k.waits || "");
  }
  return card("Ranks" + of, table(heads, r.ranks.map((k, i) => columns.map((of) => of(k, i)))));
}

function journalCard(r, of) {
  if (!r.journal || r.journal.length === 0) return null;
  const rows = r.journal.slice().reverse().map((l) => [l.time.slice(0, 19).replace("T", " "), number(l.step), l.event, l.text || ""]);
  return card("Journal" + of, table([left("time (UTC)"), right("step"), left("event"), left("")], rows));
}

function configCard(runs) {
  const keys = [...new Set(runs.flatMap((r) => (r.differences || []).map((d) => d.key)))];
  const value = (r, key) => {
    const mine = (r.differences || []).find((d) => d.key === key);
    if (mine) return mine.here;
    return runs.flatMap((o) => o.differences || []).find((d) => d.key === key).first;
  };
  const parts = runs.map((r) => h("details", {}, h("summary", {}, runs.length > 1 ? r.name : "all values and their origin"), h("pre", {}, r.config)));
  if (keys.length > 0) {
    parts.unshift(table([left("key"), ...runs.map((r) => left(r.name))],
      keys.map((k) => [h("code", {}, k), ...runs.map((r) => value(r, k))])));
  }
  const made = card(runs.length > 1 ? "What differs between the configurations" : "Configuration", ...parts);
  if (runs.length > 1) made.classList.add("wide");
  return made;
}
