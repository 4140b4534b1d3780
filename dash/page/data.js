// What is known of the runs, from the server of `anneal watch` or from the record in a report.

const data = {
  view: { runs: [] },
  curves: [], // by run: generation, width, x by axis, series by name
  parts: [], // by run: a stretch read again more finely, with its zoom; or undefined
  cost: 0, // milliseconds that the last update took, from its request until it was on the screen; 0 before that
  drawn: 0, // milliseconds from the request of the page until its charts were on the screen
};

const token = (() => {
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (!given) return sessionStorageGet("token");
  history.replaceState(null, "", location.pathname);
  try {
    sessionStorage.setItem("token", given[1]);
  } catch { /* a browser without storage asks again after a reload */ }
  return given[1];
})();

function sessionStorageGet(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

async function ask(path) {
  const answer = await fetch(path, { headers: token ? { Authorization: "Bearer " + token } : {} });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// merge adds the buckets that were asked for to those that were there.
function merge(old, more) {
  if (!old || more.from === 0) return more;
  const join = (a, b) => a.slice(0, more.from).concat(b);
  const length = (list) => {
    const a = list.slice(0, more.from);
    while (a.length < more.from) a.push(null); // the number was not seen for a while
    return a;
  };
  const x = {};
  for (const axis of Object.keys(old.x)) x[axis] = join(old.x[axis], more.x[axis]);
  const series = { ...old.series };
  for (const [name, s] of Object.entries(more.series)) {
    const was = old.series[name] || { mean: [] };
    const now = { mean: length(was.mean).concat(s.mean) };
    if (was.min || s.min) {
      now.min = length(was.min || was.mean).concat(s.min || s.mean);
      now.max = length(was.max || was.mean).concat(s.max || s.mean);
    }
    series[name] = now;
  }
  return { generation: more.generation, width: more.width, x, series };
}

// update asks for what is new. Another server at this address, such as that of a second `anneal watch`, may show other
// runs or newer code: nothing of what is here goes with its data.
async function update() {
  const view = await ask("api/view");
  if (data.view.watch && data.view.watch !== view.watch) return location.reload();
  await Promise.all(view.runs.map(async (_, i) => {
    const has = data.curves[i];
    const from = has ? Math.max(0, has.x.step.length - 1) : 0;
    const query = has ? `?generation=${has.generation}&width=${has.width}&from=${from}` : "";
    data.curves[i] = merge(has, await ask(`api/curves/${i}${query}`));
  }));
  data.view = view;
}

// follow updates every second, and calls changed after it with an error, or null.
function follow(changed) {
  const record = document.getElementById("record");
  if (record) {
    const all = JSON.parse(record.textContent);
    data.view = all.view;
    data.curves = all.curves;
    changed(null);
    return;
  }
  const next = async () => {
    const began = performance.now();
    data.cost = 0;
    let fault = null;
    try {
      await update();
    } catch (e) {
      fault = e;
    }
    changed(fault);
    painted((now) => {
      data.cost = now - began;
      data.drawn ||= now;
    });
    setTimeout(next, document.hidden ? 5000 : 1000);
  };
  next();
}

// painted calls back with the time when the next frame is on the screen.
function painted(then) {
  requestAnimationFrame(() => setTimeout(() => then(performance.now())));
}

// refine reads a stretch of steps again where buckets hold several, so that a closer look shows more.
async function refine(i, from, to, zoom) {
  if (document.getElementById("record") || data.curves[i].width === 1) return;
  data.parts[i] = { ...(await ask(`api/part/${i}?from=${from}&to=${to}`)), zoom };
}

// points returns the curves of a run that a chart shows.
function points(i, zoom) {
  const part = data.parts[i];
  return zoom && part && part.zoom === zoom ? part : data.curves[i];
}
