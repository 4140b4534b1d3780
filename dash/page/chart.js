// Line charts on a canvas. All share the x axis, the zoom and the cursor.

const ui = {
  axis: "step",
  logx: false,
  smooth: 0.8,
  zoom: null, // [from, to] on the axis
  cursor: null, // a place on the axis
  hidden: new Set(), // numbers of runs
  samples: new Map(), // by directory of a run: the step whose texts are shown, unless the newest
};

const axes = {
  step: { label: "steps", text: (v) => number(Math.round(v)) },
  tokens: { label: "tokens", text: short },
  seconds: { label: "training time", text: duration },
  flops: { label: "operations", text: flops },
};

const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 2, 1, 2]];

let colours = {};

// readColours takes the colours of the theme from the style sheet.
function readColours() {
  const probe = document.body.appendChild(h("span", { hidden: true }));
  const of = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  colours = { text: of("text"), soft: of("soft"), line: of("line"), card: of("card") };
  colours.lines = [0, 1, 2, 3, 4, 5, 6].map((i) => of("c" + i));
  probe.remove();
}

const shown = () => data.view.runs.map((_, i) => i).filter((i) => !ui.hidden.has(i) && data.curves[i]);

// smoothed is an exponential mean, corrected for its start.
function smoothed(values, share) {
  let sum = 0, weight = 0;
  return values.map((v) => {
    if (missing(v)) return null;
    sum = share * sum + (1 - share) * v;
    weight = share * weight + 1 - share;
    return sum / weight;
  });
}

// below returns the last index whose value is at most v, of a list that grows; -1 if there is none.
function below(list, v) {
  let lo = -1, hi = list.length - 1;
  while (lo < hi) {
    const mid = Math.ceil((lo + hi) / 2);
    if (list[mid] <= v) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

class Chart {
  // def: title, unit, text of a value, names of series or a prefix, log, smooth, rare: only shown if it is not always 0
  constructor(def) {
    this.def = def;
    this.log = !!def.log;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.legend = h("div", { class: "legend" });
    this.button = h("button", { class: "log", "aria-pressed": String(this.log), title: "logarithmic (l)" }, "log");
    this.button.onclick = () => this.toggleLog();
    this.element = h("div", { class: "card chart", role: "group", "aria-label": def.title },
      h("h2", {}, def.title, h("span", { class: "unit" }, def.unit || ""), this.button), this.canvas, this.legend);
    this.element.tabIndex = 0;
    this.listen();
  }

  toggleLog() {
    this.log = !this.log;
    this.button.setAttribute("aria-pressed", String(this.log));
    redraw();
  }

  // lines returns what is to be drawn: one line for each run and series. Layers on top of each other are of one run.
  lines() {
    const runs = this.def.stack ? shown().slice(0, 1) : shown();
    const names = this.names(runs);
    const list = [];
    runs.forEach((i) => {
      const p = points(i, ui.zoom);
      names.forEach((name, k) => {
        const s = p.series[name];
        if (!s) return;
        const alone = data.view.runs.length === 1 || this.def.stack;
        const label = this.label(name, names.length);
        list.push({
          x: p.x[ui.axis], s, run: i, exact: name.startsWith("val_"), dash: dashes[(alone ? 0 : k) % dashes.length],
          colour: colours.lines[(alone ? k : i) % colours.lines.length],
          name: alone ? label : data.view.runs[i].name + (names.length > 1 ? " " + label : ""),
        });
      });
    });
    return list;
  }

  names(runs) {
    const has = new Set(runs.flatMap((i) => Object.keys(data.curves[i].series)));
    if (this.def.order) return this.def.order.map((n) => this.def.prefix + n).filter((n) => has.has(n));
    if (this.def.prefix) return [...has].filter((n) => n.startsWith(this.def.prefix)).slice(0, 12);
    return this.def.names.filter((n) => has.has(n));
  }

  label(name, many) {
    if (this.def.prefix) return name.slice(this.def.prefix.length);
    return many > 1 ? (this.def.labels && this.def.labels[name]) || name : this.def.title;
  }

  get empty() {
    const names = this.names(shown());
    if (!this.def.rare) return names.length === 0;
    return !shown().some((i) => names.some((n) => data.curves[i].series[n]?.mean.some((v) => v > 0)));
  }

  // span is the range of the x axis.
  span(lines) {
    if (ui.zoom) return ui.zoom;
    let lo = Infinity, hi = -Infinity;
    for (const l of lines) {
      for (const v of [l.x[0], l.x[l.x.length - 1]]) {
        if (missing(v)) continue;
        lo = Math.min(lo, v);
        hi = Math.max(hi, v);
      }
    }
    if (!(lo < hi)) return [Math.min(lo, 1e300) - 1, Math.max(hi, -1e300) + 1];
    return [ui.logx ? Math.max(lo, hi / 1e6) : lo, hi];
  }

  // range is that of the y axis: what the means take, within the x range.
  range(lines, [from, to]) {
    let lo = Infinity, hi = -Infinity;
    for (const l of lines) {
      for (const values of [l.s.mean, ...(l.stacked ? [l.base] : [])]) {
        for (let i = Math.max(0, below(l.x, from)); i < values.length && !(l.x[i] > to); i++) {
          const v = values[i];
          if (missing(v) || (this.log && v <= 0)) continue;
          lo = Math.min(lo, v);
          hi = Math.max(hi, v);
        }
      }
    }
    if (lo > hi) return this.log ? [0.1, 1] : [0, 1];
    if (this.def.zero && !this.log) lo = Math.min(lo, 0);
    if (lo === hi) {
      const d = Math.abs(lo) / 10 || 1;
      return this.log ? [lo / 2, hi * 2] : [this.def.zero ? lo : lo - d, hi + d];
    }
    if (this.log) return [lo / (hi / lo) ** 0.05, hi * (hi / lo) ** 0.05];
    return [lo - (this.def.zero ? 0 : 0.05 * (hi - lo)), hi + 0.05 * (hi - lo)];
  }

  // measure comes before any chart draws: asking for a size after a change lays out the whole page again.
  measure() {
    this.box = this.canvas.getBoundingClientRect();
  }

  // near reports whether the chart is in the window, or so few pixels above or below.
  near(pixels) {
    return this.box.bottom > -pixels && this.box.top < innerHeight + pixels;
  }

  // clear prepares the canvas, with a margin left for the labels of the y axis.
  clear(margin) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.box.width * ratio);
    this.canvas.height = Math.round(this.box.height * ratio);
    const c = this.canvas.getContext("2d");
    c.scale(ratio, ratio);
    this.area = { x: margin, y: 6, w: this.box.width - margin - 8, h: this.box.height - 30 };
    return c;
  }

  draw() {
    if (!this.box || this.box.width === 0) return;
    const c = this.clear(56);
    const lines = this.def.stack ? stack(this.lines()) : this.lines();
    this.drawn = lines;
    this.from = this.span(lines);
    this.to = this.range(lines, this.from);
    this.grid(c);
    c.save();
    c.beginPath();
    c.rect(this.area.x, this.area.y, this.area.w, this.area.h);
    c.clip();
    for (const l of lines) this.line(c, l);
    this.cross(c);
    c.restore();
    this.tell();
  }

  px(v) {
    const [lo, hi] = this.from;
    const f = ui.logx ? Math.log(v / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo);
    return this.area.x + f * this.area.w;
  }

  py(v) {
    const [lo, hi] = this.to;
    const f = this.log ? Math.log(v / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo);
    return this.area.y + (1 - f) * this.area.h;
  }

  // back returns the place on the x axis under a pixel.
  back(px) {
    const [lo, hi] = this.from;
    const f = Math.min(1, Math.max(0, (px - this.area.x) / this.area.w));
    return ui.logx ? lo * (hi / lo) ** f : lo + f * (hi - lo);
  }

  grid(c) {
    const a = this.area;
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = colours.soft;
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    const text = this.def.text || number;
    let last = Infinity;
    for (const v of ticks(...this.to, Math.max(2, a.h / 40), this.log, this.def.base)) {
      const y = Math.round(this.py(v)) + 0.5;
      c.beginPath();
      c.moveTo(a.x, y);
      c.lineTo(a.x + a.w, y);
      c.stroke();
      if (last - y > 12) {
        c.fillText(text(v), a.x - 6, y);
        last = y;
      }
    }
    c.textBaseline = "top";
    c.textAlign = "center";
    let free = -Infinity;
    for (const v of ticks(...this.from, Math.max(2, a.w / 90), ui.logx)) {
      const label = axes[ui.axis].text(v);
      const wide = c.measureText(label).width;
      const x = Math.min(Math.max(this.px(v), a.x + wide / 2), a.x + a.w - wide / 2);
      if (x - wide / 2 < free) continue;
      c.fillText(label, x, a.y + a.h + 6);
      free = x + wide / 2 + 8;
    }
  }

  // path joins points from one index to another; gaps of numbers that are not there are bridged. Of the points over one
  // pixel of the screen it takes the first, the lowest, the highest and the last, which looks the same (Jugel et al.
  // 2014, M4).
  path(c, x, y, from, to) {
    const ratio = window.devicePixelRatio || 1;
    let column = -Infinity, last = -1, low = -1, high = -1; // of the points over one pixel, by index
    const point = (i) => c.lineTo(this.px(x[i]), this.py(y[i]));
    const leave = () => {
      if (low !== high) [Math.min(low, high), Math.max(low, high)].forEach(point);
      if (last >= 0) point(last);
    };
    for (let i = from; i <= to; i++) {
      if (missing(y[i]) || missing(x[i]) || (this.log && y[i] <= 0)) continue;
      const at = Math.floor(this.px(x[i]) * ratio);
      if (at !== column) {
        leave();
        point(i);
        column = at;
        low = high = i;
      } else {
        if (y[i] < y[low]) low = i;
        if (y[i] > y[high]) high = i;
      }
      last = i;
    }
    leave();
  }

  line(c, l) {
    const from = Math.max(0, below(l.x, this.from[0]));
    const to = Math.min(l.s.mean.length - 1, below(l.x, this.from[1]) + 1);
    c.strokeStyle = c.fillStyle = l.colour;
    c.setLineDash(l.dash);
    c.lineJoin = "round";
    if (l.stacked) return this.layer(c, l, from, to);
    const smooth = this.def.smooth && !l.exact && ui.smooth > 0 && l.s.mean.length > 40;
    if (l.s.min && l.s.mean.length) {
      c.globalAlpha = 0.18;
      this.band(c, l, from, to);
    }
    c.globalAlpha = smooth ? 0.35 : 1;
    c.lineWidth = smooth ? 1 : 1.6;
    c.beginPath();
    this.path(c, l.x, l.s.mean, from, to);
    c.stroke();
    c.globalAlpha = 1;
    if (smooth) {
      l.smooth = smoothed(l.s.mean, ui.smooth);
      c.lineWidth = 2;
      c.beginPath();
      this.path(c, l.x, l.smooth, from, to);
      c.stroke();
    }
    c.setLineDash([]);
    this.dots(c, l, from, to);
  }

  // dots marks the points of a line that has few.
  dots(c, l, from, to) {
    const at = [];
    for (let i = from; i <= to && at.length <= 40; i++) if (!missing(l.s.mean[i])) at.push(i);
    if (at.length > 40) return;
    for (const i of at) {
      if (this.log && l.s.mean[i] <= 0) continue;
      c.beginPath();
      c.arc(this.px(l.x[i]), this.py(l.s.mean[i]), 2.5, 0, 2 * Math.PI);
      c.fill();
    }
  }

  // band fills what lies between the smallest and the largest of each bucket, or of those over one pixel of the screen.
  band(c, l, from, to) {
    const ratio = window.devicePixelRatio || 1, floor = this.to[0];
    const edge = (values, i) => this.py(this.log && values[i] <= 0 ? floor : values[i]);
    const low = [], high = [];
    let column = -Infinity;
    for (let i = from; i <= to; i++) {
      if (missing(l.s.max[i]) || missing(l.s.min[i])) continue;
      const x = this.px(l.x[i]), at = Math.floor(x * ratio);
      if (at !== column) {
        column = at;
        low.push([x, -Infinity]);
        high.push([x, Infinity]);
      }
      const k = low.length - 1;
      low[k][1] = Math.max(low[k][1], edge(l.s.min, i)); // y grows downwards
      high[k][1] = Math.min(high[k][1], edge(l.s.max, i));
    }
    c.beginPath();
    for (const [x, y] of high.concat(low.reverse())) c.lineTo(x, y);
    c.fill();
  }

  // layer fills what a part of a sum takes.
  layer(c, l, from, to) {
    c.globalAlpha = 0.75;
    c.beginPath();
    for (let i = from; i <= to; i++) if (!missing(l.s.mean[i])) c.lineTo(this.px(l.x[i]), this.py(l.s.mean[i]));
    for (let i = to; i >= from; i--) if (!missing(l.base[i])) c.lineTo(this.px(l.x[i]), this.py(l.base[i]));
    c.fill();
    c.globalAlpha = 1;
    c.setLineDash([]);
  }

  cross(c) {
    c.strokeStyle = colours.soft;
    c.lineWidth = 1;
    if (ui.cursor !== null) {
      const x = Math.round(this.px(ui.cursor)) + 0.5;
      c.beginPath();
      c.moveTo(x, this.area.y);
      c.lineTo(x, this.area.y + this.area.h);
      c.stroke();
    }
    if (this.drag) {
      c.globalAlpha = 0.2;
      c.fillStyle = colours.soft;
      c.fillRect(this.drag[0], this.area.y, this.drag[1] - this.drag[0], this.area.h);
      c.globalAlpha = 1;
    }
  }

  // tell writes the values at the cursor, or the newest.
  tell() {
    const text = this.def.text || number;
    const at = ui.cursor;
    const children = this.drawn.map((l) => {
      const i = at === null ? known(l.s.mean, l.s.mean.length - 1, Infinity) : known(l.s.mean, nearest(l.x, at), 2 + 0.05 * l.x.length);
      let value = "–";
      if (i >= 0) {
        const v = l.values ? l.values[i] : l.s.mean[i];
        value = text(v);
        if (l.s.min && !l.stacked && l.s.max[i] > l.s.min[i]) value += ` (${text(l.s.min[i])} to ${text(l.s.max[i])})`;
        if (l.smooth && !missing(l.smooth[i])) value += ` ~ ${text(l.smooth[i])}`;
      }
      const swatch = h("span", { class: "swatch" });
      swatch.style.borderTopColor = l.colour;
      if (l.dash.length) swatch.style.borderTopStyle = l.dash[0] < 4 ? "dotted" : "dashed";
      return h("span", {}, swatch, l.name + " " + value);
    });
    if (this.def.stack && shown().length > 1) children.unshift(h("span", {}, data.view.runs[shown()[0]].name));
    if (at !== null) children.unshift(h("span", { class: "at" }, axes[ui.axis].label + " " + axes[ui.axis].text(at)));
    this.legend.replaceChildren(...children);
    // A line more at the cursor must not move the charts below, so that the legend keeps the height it once had.
    this.legendHigh = Math.max(this.legendHigh || 0, this.legend.offsetHeight);
    this.legend.style.minHeight = this.legendHigh + "px";
  }

  listen() {
    const c = this.canvas;
    const place = (e) => e.clientX - c.getBoundingClientRect().left;
    c.onpointerdown = (e) => {
      if (e.pointerType !== "touch") c.setPointerCapture(e.pointerId);
      this.drag = [place(e), place(e)];
    };
    c.onpointermove = (e) => {
      if (this.drag) this.drag[1] = place(e);
      setCursor(this.back(place(e)));
    };
    c.onpointerup = (e) => {
      const d = this.drag;
      this.drag = null;
      if (d && e.pointerType !== "touch" && Math.abs(d[1] - d[0]) > 5) {
        setZoom([this.back(Math.min(...d)), this.back(Math.max(...d))]);
      }
    };
    c.onpointerleave = () => this.drag || setCursor(null);
    c.onpointercancel = () => {
      this.drag = null;
      setCursor(null);
    };
    c.ondblclick = () => setZoom(null);
    this.element.onkeydown = (e) => this.key(e);
  }

  key(e) {
    if (e.target !== this.element || e.ctrlKey || e.metaKey || e.altKey) return;
    const far = e.shiftKey ? 10 : 1;
    const act = {
      ArrowLeft: () => this.move(-far), ArrowRight: () => this.move(far), Home: () => setCursor(this.from[0]),
      End: () => setCursor(this.from[1]), Escape: () => setCursor(null), "+": () => this.closer(0.5),
      "=": () => this.closer(0.5), "-": () => this.closer(2), l: () => this.toggleLog(),
    }[e.key];
    if (!act) return;
    act();
    e.preventDefault();
    e.stopPropagation();
  }

  // move takes the cursor some points further.
  move(by) {
    const l = this.drawn[0];
    if (!l) return;
    const i = ui.cursor === null ? l.x.length - 1 : nearest(l.x, ui.cursor) + by;
    setCursor(l.x[Math.min(Math.max(i, 0), l.x.length - 1)]);
  }

  // closer shows a part of the range around the cursor, or more of it.
  closer(share) {
    const [lo, hi] = this.from;
    const whole = this.whole();
    const centre = ui.cursor ?? (lo + hi) / 2;
    const half = Math.min((hi - lo) * share, whole[1] - whole[0]) / 2;
    const from = Math.max(whole[0], Math.min(centre - half, whole[1] - 2 * half));
    const to = Math.min(whole[1], from + 2 * half);
    setZoom(to - from >= whole[1] - whole[0] ? null : [from, to]);
  }

  whole() {
    const zoom = ui.zoom;
    ui.zoom = null;
    const span = this.span(this.lines());
    ui.zoom = zoom;
    return span;
  }
}

// known returns the index of the value that is nearest to i, -1 where a series has ended by more than near before i, or
// not begun.
function known(values, i, near) {
  let before = i, after = i;
  while (before >= 0 && missing(values[before])) before--;
  while (after < values.length && missing(values[after])) after++;
  if (before >= 0 && after < values.length) return i - before <= after - i ? before : after;
  if (before >= 0 && i - before < near) return before;
  return after < values.length && after - i < near ? after : -1;
}

function nearest(x, v) {
  const i = Math.max(0, below(x, v));
  return i + 1 < x.length && x[i + 1] - v < v - x[i] ? i + 1 : i;
}

// stack puts lines on top of each other.
function stack(lines) {
  let base = [];
  return lines.map((l) => {
    const top = l.s.mean.map((v, i) => (missing(v) ? null : v + (base[i] || 0)));
    const layer = { ...l, stacked: true, values: l.s.mean, s: { mean: top }, base: top.map((v, i) => (v === null ? null : base[i] || 0)) };
    base = top;
    return layer;
  });
}
