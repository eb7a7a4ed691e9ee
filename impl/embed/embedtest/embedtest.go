// Package embedtest opens pages in a real Chromium, for tests of what stands in
// other people's pages. Every host below .example is this machine, so that pages
// of several sites can meet.
package embedtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const patience = 20 * time.Second

var browser struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

// Close ends the browser, if a test started it. It belongs at the end of a
// TestMain.
func Close() {
	if browser.stop != nil {
		browser.stop()
	}
}

// find gives the program of the browser, or nothing where there is none.
func find() string {
	if own := os.Getenv("INLET_CHROME"); own != "" {
		return own
	}
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	return ""
}

func startBrowser(program string) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.IgnoreCertErrors,
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"),
		// Pages of different sites are in different processes, as people have it.
		chromedp.Flag("site-per-process", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which refuses to work for root
	}
	ctx, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopBrowser := chromedp.NewContext(ctx)
	browser.ctx, browser.stop = ctx, func() { stopBrowser(); stopAllocator() }
	browser.err = chromedp.Do(ctx)
}

// A Tab is a page that is open in the browser, or a frame of one.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	expected []string
}

// Open opens an empty page that shares no cookies with others. The test is
// skipped where there is no browser, and fails when the browser reports a
// problem that was not expected: an error in the console, a violated policy.
func Open(t testing.TB) *Tab {
	t.Helper()
	program := find()
	if program == "" {
		t.Skip("there is no Chromium to test pages with: install it, or name it with INLET_CHROME")
	}
	browser.Do(func() { startBrowser(program) })
	if browser.err != nil {
		t.Fatalf("%s does not start: %v", program, browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return watch(ctx, t)
}

func watch(ctx context.Context, t testing.TB) *Tab {
	t.Helper()
	tab := &Tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, tab.notice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		for _, problem := range tab.problems {
			if !slices.ContainsFunc(tab.expected, func(part string) bool { return strings.Contains(problem, part) }) {
				t.Errorf("the browser reports: %s", problem)
			}
		}
	})
	return tab
}

func (tab *Tab) notice(event any) {
	var problem string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			problem = "console:"
			for _, arg := range e.Args {
				problem += fmt.Sprintf(" %s %s", arg.Value, arg.Description)
			}
		}
	case *browserlog.EventEntryAdded:
		if e.Entry.Level == browserlog.EntryLevelError || e.Entry.Level == browserlog.EntryLevelWarning {
			problem = strings.TrimSpace(e.Entry.Text + " " + e.Entry.URL)
		}
	}
	if problem != "" {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.problems = append(tab.problems, problem)
	}
}

// Expect says that a problem with these words may be reported.
func (tab *Tab) Expect(words string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.expected = append(tab.expected, words)
}

// Problems are those that the browser has reported so far.
func (tab *Tab) Problems() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.problems)
}

func run[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatalf("%s: %v; the browser reported %q", what, err, tab.Problems())
	}
	return value
}

func call[P, R any](tab *Tab, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	return run(tab, command.Method, func(ctx context.Context, target *chromedp.Target) (R, error) {
		return cdp.Call(ctx, target, command, params)
	})
}

// Before has a script run in every page before its own.
func (tab *Tab) Before(script string) {
	tab.t.Helper()
	call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// In sets language and time zone of the browser.
func (tab *Tab) In(locale, zone string) {
	tab.t.Helper()
	call(tab, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: locale})
	call(tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
}

// Dark has the browser prefer dark pages.
func (tab *Tab) Dark() {
	tab.t.Helper()
	call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
}

// Resize sets the size of the window.
func (tab *Tab) Resize(width, height int64) {
	tab.t.Helper()
	call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 2, Mobile: width < 600,
	})
}

// Go opens a page and waits until it is loaded.
func (tab *Tab) Go(address string) {
	tab.t.Helper()
	run(tab, address, chromedp.Navigate(address))
}

// Reload opens the page again.
func (tab *Tab) Reload() {
	tab.t.Helper()
	run(tab, "reload", chromedp.Reload())
}

// Eval gives the value of an expression, awaited if it is a promise; null and
// undefined are the zero value.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	value := run(tab, expression, chromedp.Evaluate[*T](expression, chromedp.EvalAwaitPromise))
	if value == nil {
		return *new(T)
	}
	return *value
}

// Do runs a script for what it does.
func (tab *Tab) Do(script string) {
	tab.t.Helper()
	run(tab, script, chromedp.Evaluate[chromedp.Void](script, chromedp.EvalAwaitPromise))
}

// Until waits until an expression is true.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	for deadline := time.Now().Add(patience / 2); !Eval[bool](tab, "Boolean("+expression+")"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tab.t.Fatalf("never: %s; the page says %q, the browser reported %q",
				expression, Eval[string](tab, "document.body && document.body.innerText.slice(-500)"), tab.Problems())
		}
	}
}

// Click clicks what a selector finds first, as a mouse does.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	run(tab, "click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// DoubleClick clicks twice.
func (tab *Tab) DoubleClick(selector string) {
	tab.t.Helper()
	run(tab, "double click "+selector, chromedp.DoubleClick(chromedp.CSS(selector)))
}

// Type types into what a selector finds first, key by key.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	run(tab, "type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys where the focus is.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	run(tab, "press", chromedp.KeyEvent(keys))
}

// Cookies are those that the page's server would get, by name.
func (tab *Tab) Cookies() map[string]*network.Cookie {
	tab.t.Helper()
	all := make(map[string]*network.Cookie)
	for _, c := range call(tab, network.GetCookies, network.GetCookiesParams{}).Cookies {
		all[c.Name] = c
	}
	return all
}

// SetCookie sets a cookie for an address.
func (tab *Tab) SetCookie(address, name, value string) {
	tab.t.Helper()
	call(tab, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: address})
}

// Frame gives the frame of another site whose address has a part.
func (tab *Tab) Frame(part string) *Tab {
	tab.t.Helper()
	own := chromedp.FromContext(tab.ctx).BrowserContextID
	for deadline := time.Now().Add(patience / 2); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		targets, err := chromedp.Targets(tab.ctx)
		if err != nil {
			tab.t.Fatal(err)
		}
		for _, info := range targets {
			if info.Type != "iframe" || info.BrowserContextID != own || !strings.Contains(info.URL, part) {
				continue
			}
			ctx, cancel := chromedp.NewContext(tab.ctx, chromedp.WithTargetID(info.TargetID), chromedp.WithDetachOnCancel())
			tab.t.Cleanup(cancel)
			frame := watch(ctx, tab.t)
			// What was reported before somebody listened is told again.
			call(frame, browserlog.Disable, cdp.Empty{})
			call(frame, browserlog.Enable, cdp.Empty{})
			return frame
		}
	}
	tab.t.Fatalf("there is no frame with %s in its address; the browser reported %q", part, tab.Problems())
	return nil
}

// Shot writes a picture of the whole page.
func (tab *Tab) Shot(file string) {
	tab.t.Helper()
	if err := os.WriteFile(file, run(tab, "picture", chromedp.FullScreenshot(100)), 0o644); err != nil {
		tab.t.Fatal(err)
	}
}

// A Site is somebody's web site. It has one page, at every path.
type Site struct {
	server *httptest.Server
	host   string
}

// NewSite serves a page as a host, which is below .example or this machine's.
func NewSite(t testing.TB, host, html string, headers ...string) *Site {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.Write([]byte(html))
	})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Site{server, host}
}

// Origin is that of the site's pages.
func (s *Site) Origin() string { return At(s.server.URL, s.host) }

// At gives an address of this machine another host.
func At(address, host string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	u.Host = host + ":" + u.Port()
	return u.String()
}
