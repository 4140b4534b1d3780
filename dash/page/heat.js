// A heat map: one row for each series of a prefix, coloured by the logarithm of its values.

// cividis (Nuñez et al. 2018) is read alike with and without colour blindness.
const heatStops = [[0, 34, 78], [54, 74, 108], [108, 110, 114], [155, 148, 118], [208, 192, 92], [254, 232, 56]];

function heatColour(f) {
  const at = Math.min(Math.max(f, 0), 1) * (heatStops.length - 1);
  const i = Math.min(Math.floor(at), heatStops.length - 2);
  const mix = heatStops[i].map((v, k) => Math.round(v + (at - i) * (heatStops[i + 1][k] - v)));
  return `rgb(${mix.join(",")})`;
}

// heatPixels are the colours as pixels of an image.
const heatPixels = Uint32Array.from({ length: 256 }, (_, i) => {
  const [r, g, b] = heatColour(i / 255).match(/\d+/g).map(Number);
  return new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0];
});

class HeatMap extends Chart {
  names(runs) {
    const has = new Set(runs.flatMap((i) => Object.keys(data.curves[i].series)));
    const list = [...has].filter((n) => n.startsWith(this.def.prefix));
    return list.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  }

  toggleLog() {}

  draw() {
    this.button.hidden = true;
    const runs = shown().slice(0, 1); // rows of several runs cannot be compared by eye
    if (!this.box || this.box.width === 0 || runs.length === 0) return;
    const c = this.clear(68);
    const p = points(runs[0], ui.zoom);
    this.drawn = this.names(runs).filter((n) => p.series[n]).map((name) => ({
      x: p.x[ui.axis], s: { mean: p.series[name].mean }, name: this.label(name, 2), dash: [], colour: colours.soft,
    }));
    this.from = this.span(this.drawn);
    this.to = [0, this.drawn.length];
    this.values();
    this.cells(c);
    this.rows(c);
    this.cross(c);
    this.tell();
  }

  // values finds the range of the colours.
  values() {
    this.lo = Infinity;
    this.hi = 0;
    for (const l of this.drawn) {
      for (const v of l.s.mean) {
        if (!(v > 0)) continue;
        this.lo = Math.min(this.lo, v);
        this.hi = Math.max(this.hi, v);
      }
    }
  }

  // cells paints an image of one pixel's height for each row, which the canvas stretches. A pixel that holds several
  // points has the largest: a spike is seen however long the run.
  cells(c) {
    if (this.drawn.length === 0) return;
    const wide = Math.max(1, Math.round(this.area.w * (window.devicePixelRatio || 1)));
    const image = new ImageData(wide, this.drawn.length);
    const pixels = new Uint32Array(image.data.buffer);
    const range = Math.log(this.hi / this.lo) || 1, scale = wide / this.area.w;
    this.drawn.forEach((l, row) => {
      const most = new Float64Array(wide);
      let start = 0;
      for (let i = Math.max(0, below(l.x, this.from[0])); i < l.s.mean.length && start < wide; i++) {
        const v = l.s.mean[i];
        if (!(v > 0) || l.x[i] < this.from[0]) continue;
        const end = Math.round((this.px(l.x[i]) - this.area.x) * scale);
        for (let k = Math.min(start, wide - 1); k < Math.min(Math.max(end, start + 1), wide); k++) most[k] = Math.max(most[k], v);
        start = Math.max(start, end);
      }
      for (let k = 0; k < wide; k++) {
        if (most[k] > 0) pixels[row * wide + k] = heatPixels[Math.round(Math.log(most[k] / this.lo) / range * (heatPixels.length - 1))];
      }
    });
    const picture = new OffscreenCanvas(wide, this.drawn.length);
    picture.getContext("2d").putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(picture, this.area.x, this.area.y, this.area.w, this.area.h);
  }

  rows(c) {
    const a = this.area, high = a.h / Math.max(1, this.drawn.length);
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = colours.soft;
    c.textAlign = "right";
    c.textBaseline = "middle";
    let free = -Infinity;
    this.drawn.forEach((l, row) => {
      const y = a.y + (row + 0.5) * high;
      if (y < free) return;
      c.fillText(l.name.slice(0, 10), a.x - 6, y);
      free = y + 13;
    });
    c.textBaseline = "top";
    c.textAlign = "center";
    for (const v of ticks(...this.from, Math.max(2, a.w / 120), ui.logx)) {
      const x = this.px(v);
      if (x > a.x + 12 && x < a.x + a.w - 12) c.fillText(axes[ui.axis].text(v), x, a.y + a.h + 6);
    }
  }

  // tell names the range of the colours, and the smallest and largest row at the cursor.
  tell() {
    if (ui.cursor !== null && this.drawn.length <= 12) return super.tell();
    const scale = h("span", { class: "scale" });
    scale.style.background = `linear-gradient(to right, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(heatColour).join()})`;
    const text = this.def.text || number;
    const run = shown().length > 1 ? [h("span", {}, data.view.runs[shown()[0]].name)] : [];
    this.legend.replaceChildren(...run, h("span", {}, text(this.lo), scale, text(this.hi)), ...this.extremes());
  }

  extremes() {
    if (ui.cursor === null) return [];
    const at = this.drawn.map((l) => [l.name, l.s.mean[nearest(l.x, ui.cursor)]]).filter(([, v]) => !missing(v));
    if (at.length === 0) return [];
    at.sort((a, b) => a[1] - b[1]);
    const say = ([name, v]) => h("span", {}, `${name} ${number(v)}`);
    return [h("span", { class: "at" }, axes[ui.axis].text(ui.cursor)), say(at[0]), say(at[at.length - 1])];
  }
}
