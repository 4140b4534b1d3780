package dash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"anneal/run"

	"golang.org/x/net/websocket"
)

// browser is a headless Chromium with one page, spoken to by the DevTools protocol.
type browser struct {
	t       *testing.T
	socket  *websocket.Conn
	last    int
	console []string // what the page said
}

// openBrowser starts Chromium, or skips the test where there is none.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the page is not tested in a browser")
	}
	profile, err := os.MkdirTemp("", "anneal-chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) }) // processes of a browser that was killed may still write there
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-extensions", "--remote-allow-origins=*", "--remote-debugging-port=0",
		"--user-data-dir="+profile, "about:blank")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("chromium does not start: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	port := ""
	for lines := bufio.NewScanner(said); port == "" && lines.Scan(); {
		if m := regexp.MustCompile(`ws://127\.0\.0\.1:(\d+)/`).FindStringSubmatch(lines.Text()); m != nil {
			port = m[1]
		}
	}
	if port == "" {
		t.Skip("chromium does not start")
	}
	go func() { // so that it never waits for a reader
		for lines := bufio.NewScanner(said); lines.Scan(); {
		}
	}()
	answer, err := http.Get("http://127.0.0.1:" + port + "/json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var targets []struct{ Type, WebSocketDebuggerURL string }
	if err := json.NewDecoder(answer.Body).Decode(&targets); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t}
	for _, target := range targets {
		if target.Type == "page" {
			if b.socket, err = websocket.Dial(target.WebSocketDebuggerURL, "", "http://127.0.0.1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, domain := range []string{"Runtime", "Log", "Page"} {
		b.call(domain+".enable", nil)
	}
	return b
}

// call does what a method of the protocol says, and returns its result. Messages of the console on the way are kept.
func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	ask := map[string]any{"id": b.last, "method": method, "params": params}
	if err := websocket.JSON.Send(b.socket, ask); err != nil {
		b.t.Fatal(err)
	}
	for {
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		b.socket.SetReadDeadline(time.Now().Add(time.Minute))
		if err := websocket.JSON.Receive(b.socket, &m); err != nil {
			b.t.Fatal(err)
		}
		switch {
		case m.ID == b.last:
			if m.Error != nil && !strings.Contains(m.Error.Message, "target navigated") { // the page loads again
				b.t.Fatalf("%s: %s", method, m.Error.Message)
			}
			return m.Result
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown",
			m.Method == "Log.entryAdded":
			b.console = append(b.console, string(m.Params))
		}
	}
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	json.Unmarshal(b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}), &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(30 * time.Second); b.eval(expression) != true; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not in 30 s: %s; the console says %v", expression, b.console)
		}
	}
}

func (b *browser) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address})
	b.until(`document.querySelectorAll(".chart:not([hidden])").length > 5`)
}

// processor returns how long the page has used a processor.
func (b *browser) processor() time.Duration {
	b.t.Helper()
	b.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"})
	var r struct {
		Metrics []struct {
			Name  string
			Value float64 // seconds
		}
	}
	json.Unmarshal(b.call("Performance.getMetrics", nil), &r)
	for _, m := range r.Metrics {
		if m.Name == "TaskDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	b.t.Fatalf("no time of the page's tasks: %+v", r)
	return 0
}

func (b *browser) key(key string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key})
	}
}

// look sets the size and the theme of the page.
func (b *browser) look(width, height int, theme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	})
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}},
	})
}

// shoot writes a picture of the whole page into the directory that ANNEAL_SHOTS names.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("ANNEAL_SHOTS")
	if dir == "" {
		return
	}
	time.Sleep(500 * time.Millisecond)
	var shot struct{ Data []byte }
	json.Unmarshal(b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}), &shot)
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o666); err != nil {
		b.t.Fatal(err)
	}
}

// quiet fails the test if the page has said anything to the console.
func (b *browser) quiet() {
	b.t.Helper()
	b.eval("1") // what came before it is in
	if b.console != nil {
		b.t.Errorf("the console says %v", b.console)
	}
}

// ink counts the pixels of a chart that are drawn in one of the colours of lines.
const ink = `(title, colour) => {
  const chart = charts.find((c) => c.def.title === title), canvas = chart.canvas;
  const want = colours.lines[colour].match(/[\d.]+/g).map(Number);
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const p = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 0; i < p.length; i += 4) {
    if (p[i + 3] > 200 && want.every((v, k) => Math.abs(p[i + k] - v) < 12)) n++;
  }
  return n;
}`

// serveRuns serves runs until the test ends.
func serveRuns(t *testing.T, dirs ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- (&Server{Watch: newWatch(t, dirs...)}).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/"
}

// In a browser a run is drawn and followed while it grows, two runs are told apart, keys do what the page says, and
// nothing goes wrong.
func TestThePageInABrowser(t *testing.T) {
	b := openBrowser(t)
	base := newRun(t, "base", lines(1, 400))
	other := newRun(t, "lion", strings.ReplaceAll(lines(1, 300), `"loss":`, `"loss":1`), "optimizer.lr=0.01")
	b.look(1280, 2000, "light") // all charts are in sight
	b.open(serveRuns(t, base, other))
	for colour := range 2 {
		if n, _ := b.eval(fmt.Sprintf(`(%s)("Loss", %d)`, ink, colour)).(float64); n < 100 {
			t.Errorf("run %d has %v pixels of its colour", colour, n)
		}
	}
	b.until(`document.querySelector("#details").textContent.includes("optimizer.lr")`)
	b.until(`document.querySelectorAll("#runs .run").length === 2`)
	b.shoot("two")

	// A run that grows.
	b.until(`data.view.runs[0].step === 400`)
	f, err := os.OpenFile(run.MetricsFile(base), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteString(lines(401, 450) + "broken\n")
	b.until(`data.curves[0].x.step.length === 450 && document.querySelector("#runs").textContent.includes("450")`)
	b.until(`document.querySelector("#alerts").textContent.includes("cannot be read")`)

	// Keys.
	b.key("x")
	b.until(`document.querySelector("#axis").value === "tokens"`)
	b.key("x")
	b.key("x")
	b.until(`ui.axis === "flops" && charts[0].legend.textContent.includes("training")`)
	b.key("x")
	b.key("2")
	b.until(`ui.hidden.has(1) && charts[0].drawn.every((l) => l.run === 0)`)
	b.key("2")
	b.eval(`charts[0].element.focus()`)
	b.key("ArrowLeft")
	b.key("ArrowLeft")
	b.until(`charts[0].legend.textContent.startsWith("steps 449")`)
	b.key("+")
	b.until(`ui.zoom && ui.zoom[1] - ui.zoom[0] < 226 && !document.querySelector("#reset").disabled`)
	b.shoot("zoomed")
	b.key("l")
	b.until(`charts[0].log`)
	b.key("Escape")
	b.key("0")
	b.until(`ui.zoom === null && ui.cursor === null`)
	b.key("d")
	b.until(`document.documentElement.dataset.theme === "dark"`)
	b.key("?")
	b.until(`document.querySelector("#keys").open`)
	b.eval(`document.querySelector("#keys button").click()`)

	// A drag over a chart, and the values under the pointer.
	mouse := func(kind string, x float64) {
		y := b.eval(`(() => { const r = charts[0].canvas.getBoundingClientRect(); return r.y + r.height / 2; })()`)
		left := b.eval(`charts[0].canvas.getBoundingClientRect().x`).(float64)
		b.call("Input.dispatchMouseEvent", map[string]any{
			"type": kind, "x": left + x, "y": y, "button": "left", "buttons": 1, "clickCount": 1,
		})
	}
	mouse("mousePressed", 150)
	mouse("mouseMoved", 250)
	b.until(`ui.cursor > 0 && charts[0].legend.textContent.startsWith("steps")`)
	mouse("mouseReleased", 250)
	b.until(`ui.zoom !== null`)
	b.quiet()
}

// A page that stays open while `anneal watch` ends and begins again at its address shows the runs of the new server
// alone.
func TestThePageFollowsAnotherServer(t *testing.T) {
	b := openBrowser(t)
	var now atomic.Pointer[http.Handler]
	watch := func(dirs ...string) {
		h := (&Server{Watch: newWatch(t, dirs...)}).Handler()
		now.Store(&h)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*now.Load()).ServeHTTP(w, r)
	}))
	defer server.Close()
	watch(newRun(t, "old", lines(1, 100)), newRun(t, "older", lines(1, 100)))
	b.open(server.URL)
	b.until(`data.curves[0].series.loss.mean.length === 100`)
	watch(newRun(t, "new", strings.ReplaceAll(lines(1, 200), `"loss":`, `"loss":1`)))
	b.until(`document.readyState === "complete" && document.querySelector("#runs").textContent.includes("new") &&
	  data.curves[0].x.step.length === 200`)
	if least := b.eval(`Math.min(...data.curves[0].series.loss.mean)`).(float64); least < 10 {
		t.Errorf("losses from %v on are of the run that was shown before", least)
	}
	if cards := b.eval(`document.querySelectorAll("#runs .run").length`); cards != 1.0 {
		t.Errorf("%v runs are shown, not 1", cards)
	}
	b.quiet()
}

// Nothing is wider than the window on a telephone or a large screen, by day or by night. A closer look at a long run
// shows single steps.
func TestThePageFitsEveryScreen(t *testing.T) {
	b := openBrowser(t)
	address := serveRuns(t, newRun(t, "base", lines(1, 5000)))
	for _, width := range []int{360, 1280, 3840} {
		for _, theme := range []string{"light", "dark"} {
			b.look(width, 900, theme)
			b.open(address)
			if wide := b.eval(`document.documentElement.scrollWidth`).(float64); wide > float64(width) {
				t.Errorf("%v pixels wide in a window of %d", wide, width)
			}
			b.shoot(fmt.Sprintf("%d-%s", width, theme))
		}
	}
	b.eval(`setZoom([1000, 1100])`)
	b.until(`data.parts[0] && data.parts[0].width === 1 && charts[0].drawn[0].x === data.parts[0].x.step`)
	b.quiet()
}

// What the model wrote is shown, the newest first, and a slider goes back. Text of a model is text, whatever it says.
func TestThePageShowsWhatTheModelWrites(t *testing.T) {
	b := openBrowser(t)
	dir := newRun(t, "base", lines(1, 40))
	write := func(step int, text string) {
		t.Helper()
		file := filepath.Join(dir, "samples", fmt.Sprintf("step-%08d.json", step))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(run.Samples{Step: step, Texts: []run.Sample{
			{Prompt: "func main", Text: text}, {Prompt: "", Text: "package x\n\nimport (\n"},
		}})
		if err == nil {
			err = os.WriteFile(file, content, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(10, "<script>alert(1)</script>")
	write(20, "() {\n\tfmt.Println()\n}")
	b.look(1280, 900, "dark")
	b.open(serveRuns(t, dir))
	card := `[...document.querySelectorAll(".card")].find((c) => c.textContent.includes("What the model writes"))`
	b.until(card + ` !== undefined`)
	b.until(card + `.textContent.includes("Println") && ` + card + `.textContent.includes("step 20")`)
	b.shoot("samples")
	move := func(to int) {
		b.eval(fmt.Sprintf(`(() => { const s = %s.querySelector("input"); s.value = "%d"; s.oninput(); })()`, card, to))
	}
	move(0)
	b.until(card + `.textContent.includes("<script>alert(1)</script>")`)
	write(30, "another")
	b.until(card + `.querySelector("input").max === "2"`)
	b.until(card + `.textContent.includes("step 10")`) // where the reader is
	move(2)
	b.until(card + `.textContent.includes("another")`)
	b.quiet()
}

// A report is opened as a file, where nothing can be asked for.
func TestAReportInABrowser(t *testing.T) {
	b := openBrowser(t)
	path := filepath.Join(t.TempDir(), "report.html")
	w := newWatch(t, newRun(t, "base", lines(1, 400)), newRun(t, "other", lines(1, 200), "optimizer.lr=0.01"))
	if err := w.WriteReport(path); err != nil {
		t.Fatal(err)
	}
	b.open("file://" + filepath.ToSlash(path))
	if n, _ := b.eval(fmt.Sprintf(`(%s)("Loss", 0)`, ink)).(float64); n < 100 {
		t.Errorf("%v pixels", n)
	}
	b.until(`document.querySelector("#details").textContent.includes("optimizer.lr")`)
	b.shoot("report")
	b.quiet()
}

// Each layer has a row in the maps of updates and activations, the legend says what is under the cursor, and memory is
// told by kind.
func TestThePageShowsTheInside(t *testing.T) {
	b := openBrowser(t)
	text := lines(1, 20)
	for step := 21; step <= 40; step++ {
		text += fmt.Sprintf(`{"step":%d,"loss":2,"clip_rate":0.1,"clip_rate_recent":0.25,"update_ratios":{"layers":`+
			`[0.001,0.0%d,0.003],"groups":{"matrix":0.002}},"activation_rms":[0.25,4,%d]}`+"\n", step, step, step)
	}
	dir := newRun(t, "base", text)
	write(t, filepath.Join(dir, "timing.json"), `{"steps":0,"phases":{},"memory":[{"name":"gradients",`+
		`"predicted":9437184,"actual":1048576},{"name":"activations","predicted":28311552,"actual":null}]}`)
	b.look(1280, 3000, "light")
	b.open(serveRuns(t, dir))
	b.until(`data.curves[0].x.step.at(-1) === 40`)
	at := b.eval(`[known([null, 1, null, null, 2, null], 3, 1), known([1, null, null, null], 3, 1),
		known([1, null, null, null], 3, Infinity), known([null, null], 0, 9)].join()`)
	if at != "4,-1,0,-1" {
		t.Errorf("the nearest known values are %v, want those between two others, and near an end", at)
	}
	b.eval(`setCursor(30)`)
	b.until(`ui.cursor === 30 && !waiting`)
	for title, want := range map[string]string{
		"Update over weight by layer": "0 0.001|1 0.03|2 0.003", "Update over weight by group": "matrix 0.002",
		"Activation size by layer": "0 0.25|1 4|2 30", "Clip rate": "of the last 64 25 %|so far 10 %",
	} {
		got := b.eval(fmt.Sprintf(`[...charts.find((c) => c.def.title === %q).legend.children].slice(1)
			.map((e) => e.textContent.trim()).join("|")`, title))
		if got != want {
			t.Errorf("%s: %q, want %q", title, got, want)
		}
	}
	rows := b.eval(`(() => {
		const chart = charts.find((c) => c.def.title === "Activation size by layer"), a = chart.area;
		const c = chart.canvas.getContext("2d"), x = Math.round(a.x + 0.9 * a.w);
		const p = c.getImageData(x, a.y, 1, Math.floor(a.h)).data;
		const row = (k) => 4 * Math.floor((k + 0.5) * a.h / 3);
		return [0, 1, 2].map((k) => [...p.slice(row(k), row(k) + 4)].join()).join(" ");
	})()`)
	if n := len(strings.Fields(rows.(string))); n != 3 || !strings.HasPrefix(rows.(string), "0,34,78,255 ") {
		t.Errorf("the rows have the colours %v; the smallest is dark blue", rows)
	}
	card := b.eval(`[...document.querySelectorAll(".card")].find((c) => c.textContent.startsWith("Memory by kind"))
		.querySelector("tbody").textContent`)
	if card != "gradients9 MiB1 MiB25 %activations27 MiB–75 %" {
		t.Errorf("memory by kind: %q", card)
	}
	b.shoot("inside")
	b.quiet()
}

// A timing.json with less than this version writes is shown with what it has.
func TestThePageShowsTimesThatLackSome(t *testing.T) {
	b := openBrowser(t)
	dir := newRun(t, "base", lines(1, 20))
	write(t, filepath.Join(dir, "timing.json"), `{"steps":20,"step_seconds":{"predicted":1,"actual":0.5}}`)
	b.open(serveRuns(t, dir))
	card := `[...document.querySelectorAll(".card")].find((c) => c.textContent.startsWith("Predicted and actual"))`
	b.until(card + ` !== undefined`)
	if text := b.eval(card + `.textContent`).(string); !strings.Contains(text, "forward–100 ms–20 %step1 s500 ms+100 %") {
		t.Errorf("the card says %q", text)
	}
	b.quiet()
}

// The share of skipped updates counts all steps, on an axis that begins at 0. A run without any has no such chart.
func TestThePageShowsTheShareOfSkippedUpdates(t *testing.T) {
	skipped := `{"step":100,"loss":9,"lr":0.1,"skipped":true}` + "\n"
	b := openBrowser(t)
	for text, want := range map[string]string{lines(1, 200): "", lines(1, 99) + skipped + lines(101, 200): "0.5 %"} {
		w := newWatch(t, newRun(t, "a", text))
		path := filepath.Join(t.TempDir(), "report.html")
		if err := w.WriteReport(path); err != nil {
			t.Fatal(err)
		}
		b.open("file://" + path)
		const chart = `charts.find((c) => c.def.title === "Skipped updates")`
		if got := b.eval(chart + `.element.hidden`); got != (want == "") {
			t.Errorf("of %q the chart is hidden: %v", want, got)
		}
		got := b.eval(`((l) => percent(l.reduce((a, v) => a + v, 0) / l.length))(` +
			chart + `.lines()[0].s.mean.filter((v) => !missing(v)))`)
		if want != "" && got != want {
			t.Errorf("the share of skipped updates is %v, want %s", got, want)
		}
		if got := b.eval(chart + `.range([{ x: [1, 2], s: { mean: [0, 0] } }], [1, 2]).join()`); got != "0,1" {
			t.Errorf("the axis of zeros is %v, want 0,1", got)
		}
	}
	b.quiet()
}

// How a run ended is told without the directory that it was in.
func TestThePageSaysHowARunEnded(t *testing.T) {
	b := openBrowser(t)
	dir := newRun(t, "moved", lines(1, 20))
	write(t, filepath.Join(dir, "exit.json"), `{"code":75,"resume":true,"reason":"stopped at step 20 after 3.0 s; its `+
		`state is saved in runs/old\n  to continue: `+"`anneal resume runs/old`"+`"}`)
	b.open(serveRuns(t, dir))
	b.until(`document.querySelector("#runs").textContent.includes("75: stopped at step 20 after 3.0 s")`)
	if text := b.eval(`document.querySelector("#runs").textContent`).(string); strings.Contains(text, "runs/old") {
		t.Errorf("the card names the directory before: %q", text)
	}
	b.quiet()
}
