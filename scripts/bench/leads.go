package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
)

const (
	leadClients = 32
	fewContacts = 1_000
	allContacts = 1_000_000
	perCompany  = 5 // contacts
)

// lead is traffic of leads, every answer to which is read.
var lead = traffic{"/api/v1/leads", 1, 1}

// storeContacts gives the first workspace so many contacts and a fifth as many
// companies, numbered from 1. client.lead knows what each is like.
// Nine companies in ten have a domain, some have more; one in 25 shares its name
// with others. One contact in 20 has no e-mail address, one in five a profile.
func storeContacts(contacts int) string {
	companies := contacts / perCompany
	return fmt.Sprintf(`
	-- Without the checks of foreign keys it takes a third of the time.
	set local session_replication_role = replica;
	insert into companies (workspace_id, company_id, name, name_key, industry, country, source)
	select 1, n, name, lower(name), 'Software', 'DE', 'seed' from (
		select n, case when n %% 25 = 0 then 'Holding ' || n %% 4 else 'Company ' || n end as name
		from generate_series(1, %[1]d) n) named;
	insert into company_domains (workspace_id, domain, company_id, main)
	select 1, 'c' || n || '.inc', n, true from generate_series(1, %[1]d) n where n %% 10 > 0
	union all select 1, 'o' || n || '.inc', n, false from generate_series(1, %[1]d) n where n %% 5 = 1
	union all select 1, 'h' || n || '.inc', n, false from generate_series(1, %[1]d) n where n %% 25 = 1;
	insert into contacts (workspace_id, contact_id, company_id, email, first_name, last_name, title, seniority,
		department, phone, linkedin_url, name, source)
	select 1, n, 1 + n %% %[1]d, case when n %% 20 > 0 then 'p' || n || '@c' || 1 + n %% %[1]d || '.inc' end,
		'First' || n %% 1000, 'Last' || n %% 5000, 'Head of Sales', 'head', 'sales',
		case when n %% 10 > 0 then '+4930' || n end,
		case when n %% 5 = 0 then 'https://www.linkedin.com/in/person-' || n end, case when n %% 5 = 0 then 'Person ' || n end, 'seed'
	from generate_series(1, %[2]d) n;
	select setval(pg_get_serial_sequence('companies', 'company_id'), %[1]d),
		setval(pg_get_serial_sequence('contacts', 'contact_id'), %[2]d)`, companies, contacts)
}

// removeLeads takes away what the leads of a measurement left, so that the next
// one finds as many contacts as its name says.
const removeLeads = `
	set local session_replication_role = replica;
	truncate leads cascade;
	delete from company_domains where company_id in (select company_id from companies where source = 'lead');
	delete from companies where source = 'lead';
	delete from contacts where source = 'lead'`

// storeLeads starts the servers that leads are sent to, each on a database of
// its own: in one of both workspaces, a look-up for the small one would walk
// through the large one's pages.
func (b *bench) storeLeads(wanted map[string]bool) (err error) {
	if wanted["leads few"] || wanted["leads alone"] {
		if b.few, err = b.withContacts("leads_few", fewContacts); err != nil {
			return err
		}
	}
	if wanted["leads many"] {
		b.lots, err = b.withContacts("leads_many", allContacts)
	}
	return err
}

// withLeads is what is measured of leads.
func (b *bench) withLeads() []measurement {
	return append([]measurement{
		{name: "leads few", do: func(int) (sample, error) { return b.few.leads(b.ctx, leadClients) }},
		{name: "leads many", do: func(int) (sample, error) { return b.lots.leads(b.ctx, leadClients) }},
		{name: "leads alone", do: func(int) (sample, error) { return b.few.leads(b.ctx, 1) }},
	}, b.overloads("leads", "leads few", func() *server { return b.few }, lead)...)
}

// withContacts gives a server on a database of one workspace with so many
// contacts.
func (b *bench) withContacts(name string, contacts int) (*server, error) {
	fmt.Fprintf(os.Stderr, "storing %s contacts\n", thousands(contacts))
	if err := execSQL(b.ctx, b.pg.url, `create database `+name); err != nil {
		return nil, err
	}
	address, err := url.Parse(b.pg.url)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	s := &server{url: address.String()}
	if s.tenants, err = s.seed(b.ctx, "leads", 1, 0); err != nil {
		return nil, err
	}
	s.tenants[0].people = contacts
	if err := execSQL(b.ctx, s.url, storeContacts(contacts), `vacuum analyze`); err != nil {
		return nil, err
	}
	return s, s.serve()
}

// leads has each client send one lead after the other.
func (s *server) leads(ctx context.Context, clients int) (sample, error) {
	// Behind a checkpoint, the first change of a page logs all of it: more pages
	// cost more, and here they do from the start.
	if err := execSQL(ctx, s.url, removeLeads, `vacuum analyze`, `checkpoint`); err != nil {
		return sample{}, err
	}
	return s.closed(ctx, s.tenants, clients, lead)
}

// A leadAnswer is what a lead is answered, or what it should be: added then
// stands for an id that was not stored.
type leadAnswer struct {
	LeadID     int64 `json:"lead_id"`
	Company    int64 `json:"company_id"`
	Contact    int64 `json:"contact_id"`
	Reconciled bool
	IsTest     bool `json:"is_test"`
}

const added = -1

// A leadState is what a client knows of the leads it sends.
type leadState struct {
	due    leadAnswer
	repeat bool // the request repeats the last one that had a key
	keyed  struct {
		body, header []byte
		lead         int64 // zero: there was none
	}
}

// lead writes a lead: two in five of people that the workspace knows, half of
// somebody new, mostly at a company that it knows, some of a name alone. One in
// three has an idempotency key, and one in fifty repeats such a request.
func (c *client) lead() {
	l := &c.leads
	if l.repeat = l.keyed.lead != 0 && c.random.IntN(50) == 0; l.repeat {
		c.body, c.header = append(c.body, l.keyed.body...), append(c.header[:0], l.keyed.header...)
		return
	}
	c.events++
	c.kept++
	people := c.tenants[0].people
	companies := people / perCompany
	person, company := 1+c.random.IntN(people), 1+c.random.IntN(companies)
	if company%10 == 0 { // it has no domain
		company--
	}
	home, stranger := fmt.Sprintf("c%d.inc", company), "new-"+c.prefix+strconv.Itoa(c.events)
	var email, profile, companyDomain, companyName string
	atCompany := leadAnswer{Company: int64(company), Contact: added, Reconciled: true}
	switch kind := c.random.IntN(20); {
	case kind < 6: // somebody known
		if person%20 == 0 { // who has no address
			person--
		}
		l.due = leadAnswer{Company: int64(1 + person%companies), Contact: int64(person), Reconciled: true}
		email = fmt.Sprintf("P%d@c%d.inc", person, l.due.Company)
	case kind < 8: // the same, by profile
		person = perCompany * (1 + (person-1)/perCompany)
		l.due = leadAnswer{Company: int64(1 + person%companies), Contact: int64(person), Reconciled: true}
		profile = fmt.Sprintf("linkedin.com/in/Person-%d?trk=share", person)
	case kind < 11: // somebody new at a company that is known
		l.due, email = atCompany, stranger+"@"+home
	case kind < 12: // by its registrable domain
		l.due, email = atCompany, stranger+"@eu."+home
	case kind < 14: // that is named
		l.due, email, companyDomain = atCompany, stranger+"@gmail.com", "https://www."+home+"/about"
	case kind < 15: // with a profile
		l.due, email, profile = atCompany, stranger+"@"+home, "https://www.linkedin.com/in/"+stranger
	case kind < 17: // at a new company
		l.due, email, companyName = leadAnswer{Company: added, Contact: added}, "ada@"+stranger+".inc", "New "+stranger
	case kind < 18: // at none
		l.due, email = leadAnswer{Contact: added}, stranger+"@gmail.com"
	case kind < 19 && company%25 > 0: // a name, and a company's that it has alone
		l.due, companyName = leadAnswer{Company: int64(company), Reconciled: true}, fmt.Sprintf("COMPANY %d", company)
	default: // a name, and a company's that others have too
		l.due, companyName = leadAnswer{}, fmt.Sprintf("Holding %d", company%4)
	}
	c.body = fmt.Appendf(c.body, `{"title":"Head of Sales","phone":"+49 30 %d","utm":{"source":"newsletter"},"budget":%d`, c.events, company)
	if email == "" {
		c.body = append(c.body, `,"name":"Ada Lovelace"`...)
	} else {
		c.body = fmt.Appendf(c.body, `,"first_name":"Ada","last_name":"Lovelace","email":%q`, email)
	}
	for _, field := range []struct{ name, text string }{
		{"linkedin_url", profile}, {"company_domain", companyDomain}, {"company_name", companyName},
	} {
		if field.text != "" {
			c.body = fmt.Appendf(c.body, `,%q:%q`, field.name, field.text)
		}
	}
	c.body = append(c.body, '}')
	if c.header = c.header[:0]; c.random.IntN(3) == 0 {
		c.header = fmt.Appendf(c.header, "\r\nIdempotency-Key: %s", stranger)
	}
}

// checkLead makes sure that the answer ties the lead to whom it should.
func (c *client) checkLead() error {
	l, wanted := &c.leads, "201"
	if l.repeat {
		wanted = "409"
	}
	body, err := c.content()
	if err != nil {
		return err
	}
	var got leadAnswer
	if c.status() == wanted {
		err = json.Unmarshal(body, &got)
	}
	if stored := c.tenants[0].people; err != nil || !l.fits(got, stored) {
		return fmt.Errorf("%s\nwhere %s and %+v was due for %s", c.answer, wanted, l.due, c.body)
	}
	if len(c.header) > 0 {
		l.keyed.body, l.keyed.header = append(l.keyed.body[:0], c.body...), append(l.keyed.header[:0], c.header...)
		l.keyed.lead = got.LeadID
	}
	return nil
}

// fits tells whether an answer is the one that is due where so many contacts
// were stored.
func (l *leadState) fits(got leadAnswer, stored int) bool {
	if got.LeadID == 0 || l.repeat {
		return got.LeadID != 0 && got.LeadID == l.keyed.lead
	}
	is := func(got, due int64, stored int) bool { return got == due || due == added && got > int64(stored) }
	return is(got.Company, l.due.Company, stored/perCompany) && is(got.Contact, l.due.Contact, stored) &&
		got.Reconciled == l.due.Reconciled && !got.IsTest
}
