package contract

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inletdev/inlet/db/dbtest"
)

// onPages is a workspace with what pages embed.
const onPages = `
workspaces:
  - slug: SLUG
    people:
      - {ref: ada, email: ada@SLUG.example, name: Ada, role: admin}
    api_keys:
      - {ref: all, owner: ada, scopes: [leads.manage, events.send], requests_per_minute: 100000}
    companies:
      - {ref: globex, name: Globex, domain: globex.com}
    contacts:
      - {ref: hank, email: hank@globex.com, first_name: Hank, company: globex}
      - {ref: peter, email: peter@initech.com}
    sites:
      - {ref: www, secret: s3cret-SLUG, origins: ["https://www.SLUG.example"]}
      - {ref: shop, secret: shop-SLUG, origins: ["https://shop.SLUG.example"]}
    forms:
      - {ref: demo, name: Request a demo, fields: [email, first_name, company_name, team_size]}
    meeting_forms:
      - {ref: call, name: Intro call, minutes: 30}
`

// jwt signs claims, as a site's server would, with whatever algorithm.
func jwt(alg, secret string, claims map[string]any) string {
	encode := base64.RawURLEncoding.EncodeToString
	header, _ := json.Marshal(map[string]any{"alg": alg, "typ": "JWT"})
	body, _ := json.Marshal(claims)
	signed := encode(header) + "." + encode(body)
	hash := map[string]crypto.Hash{"HS256": crypto.SHA256, "HS384": crypto.SHA384, "HS512": crypto.SHA512}[alg]
	if hash == 0 {
		return signed + "."
	}
	mac := hmac.New(hash.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// claims of a good token of the site www, but for what is changed; nil takes a
// claim away.
func (w seeded) claims(email string, changes map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{"email": email, "site": w.Sites["www"].SiteKey, "iat": now, "exp": now + 600, "jti": "jti-" + email}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

func (w seeded) token(email string, changes map[string]any) string {
	return jwt("HS256", "s3cret-"+w.Slug, w.claims(email, changes))
}

// noise is text that does not compress.
func noise(characters int) string {
	var b strings.Builder
	for b.Len() < characters {
		b.WriteString(strings.ToLower(rand.Text()))
	}
	return b.String()[:characters]
}

// identifies sends a token of the site www, and tells whom its visitor is known
// as after; zero for nobody.
func (w seeded) identifies(t *testing.T, s server, visitor, token string) int64 {
	t.Helper()
	return w.claim(t, s, visitor, map[string]any{"token": token})
}

var requestIDField = regexp.MustCompile(`"request_id":"[^"]*"`)

func (w seeded) claim(t *testing.T, s server, visitor string, body map[string]any) int64 {
	t.Helper()
	body["site"], body["visitor_id"] = w.Sites["www"].SiteKey, visitor
	raw, _ := json.Marshal(body)
	a := s.send(t, "POST", "/api/v1/visitors/identify", string(raw), "Origin: https://www."+w.Slug+".example")
	if a.status != 202 || strings.TrimSpace(string(a.body)) != `{"status":"received"}` {
		t.Errorf("the answer tells something: %d %s", a.status, a.body)
	}
	return w.visitor(t, visitor)
}

// visitor gives the contact that a visitor is known as; zero for nobody.
func (w seeded) visitor(t *testing.T, id string) int64 {
	t.Helper()
	return dbtest.Query[int64](t, dbtest.URL(t),
		`select coalesce((select contact_id from visitors where workspace_id = $1 and visitor_id = $2), 0)`, w.ID, id)
}

func (w seeded) contacts(t *testing.T) int {
	t.Helper()
	return dbtest.Query[int](t, dbtest.URL(t), `select count(*) from contacts where workspace_id = $1`, w.ID)
}

func TestOnlyATokenThatTheSiteSignedIdentifiesAVisitor(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	secret, now := "s3cret-"+w.Slug, time.Now().Unix()
	good := w.claims("hank@globex.com", nil)
	with := func(changes map[string]any) map[string]any { return w.claims("hank@globex.com", changes) }
	for name, token := range map[string]string{
		"alg none":                  jwt("none", secret, good),
		"alg NONE":                  jwt("NONE", secret, good),
		"HS384":                     jwt("HS384", secret, good),
		"HS512":                     jwt("HS512", secret, good),
		"another secret":            jwt("HS256", "other", good),
		"no secret":                 jwt("HS256", "", good),
		"another site's secret":     jwt("HS256", "shop-"+w.Slug, good),
		"another site's key":        jwt("HS256", secret, with(map[string]any{"site": w.Sites["shop"].SiteKey})),
		"no site":                   jwt("HS256", secret, with(map[string]any{"site": nil})),
		"expired":                   jwt("HS256", secret, with(map[string]any{"iat": now - 700, "exp": now - 100})),
		"no exp":                    jwt("HS256", secret, with(map[string]any{"exp": nil})),
		"no iat":                    jwt("HS256", secret, with(map[string]any{"iat": nil})),
		"iat in the future":         jwt("HS256", secret, with(map[string]any{"iat": now + 300, "exp": now + 900})),
		"valid for more than a day": jwt("HS256", secret, with(map[string]any{"iat": now, "exp": now + 86401})),
		"ends before it begins":     jwt("HS256", secret, with(map[string]any{"iat": now + 30, "exp": now})),
		"not before the future":     jwt("HS256", secret, with(map[string]any{"nbf": now + 300})),
		"no email":                  jwt("HS256", secret, with(map[string]any{"email": nil})),
		"no e-mail address":         jwt("HS256", secret, with(map[string]any{"email": "hank"})),
		"too long an address":       jwt("HS256", secret, with(map[string]any{"email": strings.ToLower(rand.Text()) + strings.Repeat("h", 284) + "@globex.com"})),
		"far too long an address":   jwt("HS256", secret, with(map[string]any{"email": noise(2750) + "@globex.com"})),
		"changed behind the signature": func() string {
			parts := strings.Split(jwt("HS256", secret, w.claims("peter@initech.com", nil)), ".")
			other := strings.Split(jwt("HS256", "other", good), ".")
			return parts[0] + "." + other[1] + "." + parts[2]
		}(),
		"no token at all": "x",
		"two tokens":      jwt("HS256", secret, good) + "." + jwt("HS256", secret, good),
	} {
		if got := w.identifies(t, s, "bad-"+strings.NewReplacer(" ", "-", "'", "").Replace(name), token); got != 0 {
			t.Errorf("%s identifies %d", name, got)
		}
	}
	// An unsigned claim identifies nobody and adds nobody.
	if got := w.claim(t, s, "v1", map[string]any{"email": "hank@globex.com", "first_name": "Hank"}); got != 0 {
		t.Errorf("a claim identifies %d", got)
	}
	w.claim(t, s, "v1", map[string]any{"email": "new@newco.com"})
	if n := w.contacts(t); n != 2 {
		t.Errorf("%d contacts", n)
	}
	for name, changes := range map[string]map[string]any{
		"as it should be":              {},
		"a day to the second":          {"iat": now - 10, "exp": now - 10 + 86400, "jti": "day"},
		"a clock a little ahead":       {"iat": now + 50, "exp": now + 600, "jti": "ahead"},
		"a moment past its end":        {"iat": now - 600, "exp": now - 50, "jti": "late"},
		"e-mail in other letters":      {"email": " HANK@Globex.com", "jti": "letters"},
		"without jti":                  {"jti": nil},
		"claims that nobody asked for": {"aud": "x", "sub": "y", "name": "z", "jti": "more"},
	} {
		visitor := "good-" + strings.ReplaceAll(name, " ", "-")
		if got := w.identifies(t, s, visitor, jwt("HS256", secret, with(changes))); got != w.Contacts["hank"] {
			t.Errorf("%s identifies %d, want %d", name, got, w.Contacts["hank"])
		}
	}
}

func TestATokenIsUsedOnceByTheBrowserThatSendsItFirst(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	hank, peter := w.Contacts["hank"], w.Contacts["peter"]
	token := w.token("hank@globex.com", nil)
	if got := w.identifies(t, s, "first", token); got != hank {
		t.Fatalf("it identifies %d", got)
	}
	if got := w.identifies(t, s, "second", token); got != 0 {
		t.Errorf("another browser is %d by it", got)
	}
	// A visitor that proves to be somebody else is that one from then on, and the
	// old token changes nothing any more.
	if got := w.identifies(t, s, "first", w.token("peter@initech.com", nil)); got != peter {
		t.Errorf("the visitor is %d, want %d", got, peter)
	}
	if got := w.identifies(t, s, "first", token); got != peter {
		t.Errorf("an old token makes the visitor %d again", got)
	}
	// Of a person who is new, the same.
	token = w.token("new@newco.com", nil)
	added := w.identifies(t, s, "third", token)
	if added == 0 || w.identifies(t, s, "fourth", token) != 0 || w.identifies(t, s, "third", token) != added {
		t.Error("a token that adds a person is used more than once")
	}
	if n := w.contacts(t); n != 3 {
		t.Errorf("%d contacts, want 3", n)
	}
	// Without a jti any browser may send it.
	token = w.token("hank@globex.com", map[string]any{"jti": nil})
	if w.identifies(t, s, "fifth", token) != hank || w.identifies(t, s, "sixth", token) != hank {
		t.Error("a token without jti is used once")
	}
	// A jti is a site's own.
	token = jwt("HS256", "shop-"+w.Slug, w.claims("peter@initech.com", map[string]any{"site": w.Sites["shop"].SiteKey, "jti": "jti-hank@globex.com"}))
	s.send(t, "POST", "/api/v1/visitors/identify", fmt.Sprintf(`{"site":%q,"visitor_id":"seventh","token":%q}`, w.Sites["shop"].SiteKey, token))
	if got := w.visitor(t, "seventh"); got != peter {
		t.Errorf("a jti of another site is taken for used: %d", got)
	}
}

func TestOfManyBrowsersThatSendOneTokenAtOnceOneIsIdentified(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	for _, email := range []string{"hank@globex.com", "new@newco.com"} {
		token := w.token(email, nil)
		var parallel sync.WaitGroup
		for i := range 20 {
			parallel.Go(func() { w.identifies(t, s, fmt.Sprintf("%d-%d", len(email), i), token) })
		}
		parallel.Wait()
	}
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from visitors where workspace_id = $1`, w.ID); n != 2 {
		t.Errorf("%d visitors are identified, want one a token", n)
	}
	if n := w.contacts(t); n != 3 {
		t.Errorf("%d contacts, want 3", n)
	}
}

func TestASignedTokenAddsAPersonTheWayALeadDoes(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	type person struct {
		Email, First, Last, Company, Domain, Source string
		CompanySource                               string `db:"company_source"`
	}
	look := func(id int64) (p person) {
		raw := dbtest.Query[string](t, dbtest.URL(t), `
			select json_build_object('email', c.email, 'first', coalesce(c.first_name, ''), 'last', coalesce(c.last_name, ''),
				'company', coalesce(o.name, ''), 'domain', coalesce(d.domain, ''), 'source', c.source, 'companysource', coalesce(o.source, ''))
			from contacts c
			left join companies o on o.workspace_id = c.workspace_id and o.company_id = c.company_id
			left join company_domains d on d.workspace_id = c.workspace_id and d.company_id = c.company_id
			where c.workspace_id = $1 and c.contact_id = $2`, w.ID, id)
		json.Unmarshal([]byte(raw), &p)
		return p
	}
	claim := func(visitor, email string, more map[string]any) person {
		t.Helper()
		body := map[string]any{"token": w.token(email, nil)}
		for name, value := range more {
			body[name] = value
		}
		return look(w.claim(t, s, visitor, body))
	}
	for _, c := range []struct {
		email string
		more  map[string]any
		want  person
	}{
		{"ann@newco.com", map[string]any{"first_name": " Ann\r\n", "last_name": "O'Hara", "company": "NewCo Ltd"},
			person{"ann@newco.com", "Ann", "O'Hara", "NewCo Ltd", "newco.com", "lead", "lead"}},
		{"bob@mail.newco.com", nil, person{"bob@mail.newco.com", "", "", "NewCo Ltd", "newco.com", "lead", "lead"}},
		{"eve@gmail.com", map[string]any{"company": "Globex"}, person{Email: "eve@gmail.com", Source: "lead"}},
		{"joe@globex.com", map[string]any{"company": "Other"}, person{"joe@globex.com", "", "", "Globex", "globex.com", "lead", "seed"}},
	} {
		if got := claim("v-"+c.email[:3], c.email, c.more); got != c.want {
			t.Errorf("%s is added as %+v, want %+v", c.email, got, c.want)
		}
	}
	// Somebody who is there is not changed by what the browser says.
	claim("v-hank", "hank@globex.com", map[string]any{"last_name": "Impostor", "company": "Other"})
	if got := look(w.Contacts["hank"]); got.Last != "" || got.Company != "Globex" {
		t.Errorf("the contact is %+v", got)
	}
	for name, token := range map[string]string{
		"without jti":              w.token("nobody@other.com", map[string]any{"jti": nil}),
		"with an empty jti":        w.token("nobody@other.com", map[string]any{"jti": ""}),
		"of a domain for examples": w.token("nobody@example.com", nil),
		"of a domain for tests":    w.token("nobody@corp.test", nil),
	} {
		if got := w.identifies(t, s, "v-nobody", token); got != 0 {
			t.Errorf("a token %s adds %d", name, got)
		}
	}
	inlet(t, "", "workspace", "set", w.Slug, "--create-companies=off")
	if got := claim("v-zoe", "zoe@zoeco.com", nil); got != (person{Email: "zoe@zoeco.com", Source: "lead"}) {
		t.Errorf("without the setting, a company is added: %+v", got)
	}
	inlet(t, "", "workspace", "set", w.Slug, "--create-contacts=off")
	before := w.contacts(t)
	if got := w.identifies(t, s, "v-yan", w.token("yan@yanco.com", nil)); got != 0 || w.contacts(t) != before {
		t.Errorf("without the setting, %d is added", got)
	}
}

func TestSignedTokensAddFiveHundredPeopleADayAndRecogniseTheOthers(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	var parallel sync.WaitGroup
	for client := range 10 {
		parallel.Go(func() {
			for i := range 51 {
				n := client*51 + i
				w.identifies(t, s, fmt.Sprintf("v%d", n), w.token(fmt.Sprintf("p%d@newco.com", n), nil))
			}
		})
	}
	parallel.Wait()
	if n := w.contacts(t); n != 502 {
		t.Errorf("%d contacts, want 500 and the 2 that were there", n)
	}
	late := w.token("late@newco.com", nil)
	if got := w.identifies(t, s, "late", late); got != 0 {
		t.Errorf("one more is added: %d", got)
	}
	if got := w.identifies(t, s, "hank", w.token("hank@globex.com", nil)); got != w.Contacts["hank"] {
		t.Errorf("people who are there are recognised no more: %d", got)
	}
	dbtest.Exec(t, dbtest.URL(t), `update people_added set day = day - 1 where workspace_id = $1`, w.ID)
	if got := w.identifies(t, s, "another", late); got != 0 {
		t.Error("the token is not tied to the browser that sent it first")
	}
	if got := w.identifies(t, s, "late", late); got == 0 {
		t.Error("the next day adds nobody")
	}
}

func TestWaitingEventsFindTheirPersonTheMomentTheVisitorProvesWhoTheyAre(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	wait := func(id, visitor string) {
		w.record(t, s, fmt.Sprintf(`{"id":%q,"name":"n","visitor":{"id":%q}}`, id, visitor))
	}
	status := func(id string) string {
		return dbtest.Query[string](t, dbtest.URL(t),
			`select ts & 3 || ' ' || coalesce(contact_id, 0) from events where workspace_id = $1 and id = $2`, w.ID, id)
	}
	wait("a", "va")
	w.claim(t, s, "va", map[string]any{"email": "hank@globex.com"})
	if got := status("a"); got != "2 0" {
		t.Errorf("a claim matches the event: %s", got)
	}
	w.identifies(t, s, "va", w.token("hank@globex.com", nil))
	if got, want := status("a"), fmt.Sprint("0 ", w.Contacts["hank"]); got != want {
		t.Errorf("the event is %s, want %s", got, want)
	}
	wait("b", "vb")
	added := w.identifies(t, s, "vb", w.token("new@newco.com", nil))
	if got, want := status("b"), fmt.Sprint("0 ", added); added == 0 || got != want {
		t.Errorf("the event is %s, want %s", got, want)
	}
	wait("c", "vc")
	s.send(t, "POST", "/api/v1/forms/"+w.Forms["demo"].PublicKey, `{"fields":{"email":"hank@globex.com"},"visitor_id":"vc"}`)
	if got, want := status("c"), fmt.Sprint("0 ", w.Contacts["hank"]); got != want {
		t.Errorf("after a form the event is %s, want %s", got, want)
	}
	wait("d", "vd")
	w.book(t, s, w.slots(t, s, "")[0], "peter@initech.com", "vd")
	if got, want := status("d"), fmt.Sprint("0 ", w.Contacts["peter"]); got != want {
		t.Errorf("after a booking the event is %s, want %s", got, want)
	}
	// Identified as somebody else, earlier events stay.
	w.identifies(t, s, "va", w.token("peter@initech.com", nil))
	if got, want := status("a"), fmt.Sprint("0 ", w.Contacts["hank"]); got != want {
		t.Errorf("the event is %s, want %s", got, want)
	}
	w.factsAgree(t, dbtest.URL(t))
}

func TestTheLinkOfAnEmailIdentifiesWhoOpensItsPage(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	page := "https://www." + w.Slug + ".example/pricing?plan=pro&b;c=1&a&q=%zz&x=y%20z+#top"
	link := func() string {
		address := strings.TrimSpace(inlet(t, "", "link", "create", w.Sites["www"].SiteKey, "--contact", "Hank@globex.com",
			"--page", page, "--public-url", s.Base))
		return strings.TrimPrefix(address, s.Base)
	}()
	click := func() (proof string) {
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := client.Get(s.Base + link)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		to, err := url.Parse(response.Header.Get("Location"))
		if err != nil || response.StatusCode != http.StatusFound {
			t.Fatalf("a click answers %d, %v", response.StatusCode, err)
		}
		to.RawQuery, proof, _ = strings.Cut(to.RawQuery, "&_svclink=")
		if to.String() != page || response.Header.Get("Referrer-Policy") != "no-referrer" || response.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the click leads to %s with %v", to, response.Header)
		}
		return proof
	}
	proof := click()
	if n := dbtest.Query[int](t, dbtest.URL(t), `select count(*) from visitors where workspace_id = $1`, w.ID); n != 0 {
		t.Error("the click alone identifies somebody; mail scanners click too")
	}
	if got := w.claim(t, s, "v1", map[string]any{"link": proof}); got != w.Contacts["hank"] {
		t.Errorf("the visitor is %d, want %d", got, w.Contacts["hank"])
	}
	if got := w.claim(t, s, "v2", map[string]any{"link": proof}); got != 0 {
		t.Errorf("another browser is %d by the same click", got)
	}
	if got := w.claim(t, s, "v3", map[string]any{"link": click()}); got != w.Contacts["hank"] {
		t.Error("a link works once only")
	}
	shop := fmt.Sprintf(`{"site":%q,"visitor_id":"v4","link":%q}`, w.Sites["shop"].SiteKey, click())
	if s.send(t, "POST", "/api/v1/visitors/identify", shop); w.visitor(t, "v4") != 0 {
		t.Error("a click counts on another site")
	}
	if got := w.claim(t, s, "v5", map[string]any{"token": click()}); got != 0 {
		t.Error("a click counts as a token of the site")
	}
	inlet(t, "", "site", "set", w.Sites["www"].SiteKey, "--origin", "https://new."+w.Slug+".example")
	if a := s.send(t, "GET", link, ""); a.status != 404 {
		t.Errorf("a link to an origin that the site gave up answers %d", a.status)
	}
	inlet(t, "", "site", "set", w.Sites["www"].SiteKey, "--origin", "https://www."+w.Slug+".example")
	click()
	dbtest.Exec(t, dbtest.URL(t), `update email_links set expires_at = now() - interval '1 second' where workspace_id = $1`, w.ID)
	for _, gone := range []string{link, "/l/nope"} {
		if a := s.send(t, "GET", gone, ""); a.status != 404 {
			t.Errorf("a link that is not there answers %d", a.status)
		}
	}
	// Inlet redirects to the site's own pages only.
	for _, elsewhere := range []string{"https://evil.example/", "https://evil.example@www." + w.Slug + ".example/", "https://www." + w.Slug + ".example@evil.example/", "//www." + w.Slug + ".example/", "/pricing", "javascript:alert(1)"} {
		if _, err := tryInlet(t, "", "link", "create", w.Sites["www"].SiteKey, "--contact", "hank@globex.com", "--page", elsewhere); err == nil {
			t.Errorf("a link to %s can be made", elsewhere)
		}
	}
}

func TestSecretsOverlapWhileTheyAreRotated(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	key := w.Sites["www"].SiteKey
	try := func(visitor, secret string) bool {
		return w.identifies(t, s, visitor, jwt("HS256", secret, w.claims("hank@globex.com", map[string]any{"jti": nil}))) != 0
	}
	first := "s3cret-" + w.Slug
	second := strings.TrimSpace(inlet(t, "", "site", "rotate", key))
	if !try("a1", first) || !try("a2", second) {
		t.Error("one of two secrets is not valid")
	}
	third := strings.TrimSpace(inlet(t, "", "site", "rotate", key))
	if try("b1", first) || !try("b2", second) || !try("b3", third) {
		t.Error("after two rotations the two newest secrets are valid, and no other")
	}
	inlet(t, "", "site", "retire", key)
	if try("c2", second) || !try("c3", third) {
		t.Error("retiring leaves the newest secret alone")
	}
	signed := strings.TrimSpace(inlet(t, "", "identify-token", "sign", key, "--email", "new@newco.com"))
	if w.identifies(t, s, "d1", signed) == 0 {
		t.Error("identify-token sign makes no valid token that adds a person")
	}
	reusable := strings.TrimSpace(inlet(t, "", "identify-token", "sign", key, "--email", "other@newco.com", "--reusable"))
	if w.identifies(t, s, "d2", reusable) != 0 {
		t.Error("a reusable token adds a person")
	}
}

func TestPublicRoutesServePagesOfTheirSitesOnlyAndAnswerBrowsers(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	identify := fmt.Sprintf(`{"site":%q,"visitor_id":"v"}`, w.Sites["www"].SiteKey)
	form, meeting := "/api/v1/forms/"+w.Forms["demo"].PublicKey, "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey
	booking := fmt.Sprintf(`{"starts_at":%q,"fields":{"email":"a@newco.com","name":"A"}}`, w.slots(t, s, "")[3])
	own := "https://www." + w.Slug + ".example"
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/visitors/identify", identify, 202},
		{"GET", form, "", 200},
		{"POST", form, `{"fields":{"email":"a@newco.com"}}`, 201},
		{"GET", meeting, "", 200},
		{"GET", meeting + "/slots", "", 200},
		{"POST", meeting, booking, 201},
	} {
		for _, origin := range []string{"https://evil.example", "null", "http://www." + w.Slug + ".example", own + ".evil.example", own + ":8443"} {
			a := s.send(t, r.method, r.path, r.body, "Origin: "+origin)
			expect(t, a, 403, "origin_not_allowed", "")
			if a.header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: a page cannot read why it is refused", r.path)
			}
		}
		for _, origin := range []string{own, s.Base, ""} { // "" last: no page at all
			if r.path == meeting && r.method == "POST" && origin != own {
				continue // the slot is taken by then
			}
			if a := s.send(t, r.method, r.path, r.body, "Origin: "+origin); a.status != r.status {
				t.Errorf("%s %s from %q answers %d %s", r.method, r.path, origin, a.status, a.body)
			}
		}
		pre := s.send(t, "OPTIONS", r.path, "", "Origin: "+own, "Access-Control-Request-Method: "+r.method)
		if pre.status != 204 || pre.header.Get("Access-Control-Allow-Origin") != "*" || pre.header.Get("Access-Control-Allow-Credentials") != "" ||
			!strings.Contains(pre.header.Get("Access-Control-Allow-Methods"), r.method) || pre.header.Get("Access-Control-Allow-Headers") != "Content-Type" {
			t.Errorf("a preflight of %s answers %d %v", r.path, pre.status, pre.header)
		}
	}
	for _, path := range []string{"/api/v1/leads", "/api/v1/events", "/api/v1/motions/1/start"} {
		for _, method := range []string{"OPTIONS", "POST"} {
			if a := s.send(t, method, path, "{}", "Origin: "+own, w.Key("all")); a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s is open to pages", method, path)
			}
		}
	}
}

func TestAnAddressMayCallPublicRoutesSoOftenAMinute(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	address := func(t *testing.T, n int) string { return fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", n) }
	form, meeting := "/api/v1/forms/"+w.Forms["demo"].PublicKey, "/api/v1/meeting-forms/"+w.MeetingForms["call"].PublicKey
	for i, r := range []struct {
		method, path, body string
		allowed            int
	}{
		{"POST", "/api/v1/visitors/identify", `{"site":"site_x","visitor_id":"v"}`, 1000},
		{"GET", form, "", 600},
		{"GET", meeting, "", 600},
		{"GET", meeting + "/slots", "", 600},
		{"GET", form + "/page", "", 600},
		{"GET", meeting + "/embed.js", "", 600},
		{"GET", "/l/nope", "", 600},
		{"POST", form, `{"fields":{}}`, 120},
		{"POST", meeting, `{"starts_at":"2026-03-03T09:30:00Z","fields":{}}`, 120},
	} {
		// A minute may end meanwhile: what counts is that it is refused in the end,
		// and never before its time.
		n := 0
		var last answer
		for ; n <= 2*r.allowed+1; n++ {
			if last = s.send(t, r.method, r.path, r.body, address(t, i)); last.status == 429 {
				break
			}
		}
		if last.header.Get("Content-Type") == "application/json" { // else it is a page
			expect(t, last, 429, "rate_limited", "")
		}
		if n < r.allowed || last.status != 429 || last.header.Get("Retry-After") == "" {
			t.Errorf("%s %s is refused after %d: %v", r.method, r.path, n, last.header)
		}
		if a := s.send(t, r.method, r.path, r.body, address(t, 100+i)); a.status == 429 {
			t.Errorf("another address is refused too")
		}
	}
}

// What one address does of one kind leaves it the others, and nobody can use up
// what another has.
func TestTheLimitsOfPublicRoutesAreApart(t *testing.T) {
	t.Parallel()
	s, w := sharedServer(t), seed(t, onPages)
	form := "/api/v1/forms/" + w.Forms["demo"].PublicKey
	identify := func(site, address string) {
		t.Helper()
		for range 130 { // of submissions, 120 are allowed
			a := s.send(t, "POST", "/api/v1/visitors/identify", fmt.Sprintf(`{"site":%q,"visitor_id":"v"}`, site), "X-Forwarded-For: "+address)
			if a.status == 429 {
				t.Fatalf("identify is refused: %s", a.body)
			}
		}
	}
	submit := func(name, address string) {
		t.Helper()
		if a := s.send(t, "POST", form, `{"fields":{"email":"a@newco.com"}}`, "X-Forwarded-For: "+address); a.status != 201 {
			t.Errorf("%s: a submission answers %d %s", name, a.status, a.body)
		}
	}
	identify(w.Sites["www"].SiteKey, "198.51.100.1")
	submit("after many identifies of the address", "198.51.100.1")
	for _, made := range []string{"POST 198.51.100.2", "write 198.51.100.2"} {
		identify(made, "198.51.100.3")
	}
	submit("after many site keys that look like the address", "198.51.100.2")
	// Some proxies add the port; it makes one address of neither two nor all.
	began := time.Now()
	for i := range 125 {
		s.send(t, "POST", form, `{"fields":{}}`, fmt.Sprintf("X-Forwarded-For: 203.0.113.1, 198.51.100.4:%d", 1000+i))
		s.send(t, "POST", form, `{"fields":{}}`, fmt.Sprintf("X-Forwarded-For: [2001:db8:5::%d]:443", 1+i))
	}
	submit("after many of another address", "198.51.100.5:443")
	submit("after many of another network", "[2001:db8:6::1]:443")
	for _, address := range []string{"198.51.100.4:443", "2001:db8:5::ffff"} {
		if a := s.send(t, "POST", form, `{"fields":{}}`, "X-Forwarded-For: "+address); a.status != 429 && time.Now().Truncate(time.Minute).Equal(began.Truncate(time.Minute)) {
			t.Errorf("%s is not limited: %d", address, a.status)
		}
	}
}

// Two workspaces with the same names: nothing of one can be reached from the
// other.
func TestVisitorsSitesAndFormsOfAnotherWorkspaceAreNotThere(t *testing.T) {
	t.Parallel()
	s, mine, theirs := sharedServer(t), seed(t, onPages), seed(t, onPages)
	// Their token on my site, and mine signed with their secret.
	for _, token := range []string{
		theirs.token("hank@globex.com", nil),
		jwt("HS256", "s3cret-"+theirs.Slug, mine.claims("hank@globex.com", nil)),
		jwt("HS256", "s3cret-"+mine.Slug, theirs.claims("hank@globex.com", nil)),
	} {
		if got := mine.identifies(t, s, "v", token); got != 0 {
			t.Errorf("a token of theirs identifies %d", got)
		}
	}
	// One visitor id in two workspaces is two visitors.
	mine.identifies(t, s, "v", mine.token("hank@globex.com", nil))
	if got := theirs.visitor(t, "v"); got != 0 {
		t.Errorf("their visitor is %d", got)
	}
	a := s.send(t, "POST", "/api/v1/events", `{"id":"e","name":"n","visitor":{"id":"v"}}`, theirs.Key("all"))
	if a.field("status") != "pending_identity" {
		t.Errorf("an event of theirs with my visitor's id is %v", a.field("status"))
	}
	// My page cannot use their form, nor their page mine.
	path := "/api/v1/forms/" + mine.Forms["demo"].PublicKey
	expect(t, s.send(t, "POST", path, `{"fields":{"email":"a@newco.com"}}`, "Origin: https://www."+theirs.Slug+".example"), 403, "origin_not_allowed", "")
	// Unknown and malformed keys answer the same.
	var first []byte
	for _, key := range []string{"form_unknown", mine.MeetingForms["call"].PublicKey, "x", "%00", "form_" + strings.Repeat("a", 200)} {
		a := s.send(t, "GET", "/api/v1/forms/"+key, "")
		expect(t, a, 404, "form_not_found", "")
		same := requestIDField.ReplaceAll(a.body, nil)
		if first == nil {
			first = same
		}
		if !bytes.Equal(first, same) {
			t.Errorf("%s answers %s", key, a.body)
		}
	}
	expect(t, s.send(t, "GET", "/api/v1/meeting-forms/"+mine.Forms["demo"].PublicKey, ""), 404, "form_not_found", "")
	expect(t, s.send(t, "POST", "/api/v1/visitors/identify", `{"site":"site_unknown","visitor_id":"v"}`), 404, "site_not_found", "")
}
