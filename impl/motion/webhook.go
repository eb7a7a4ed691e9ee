package motion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/inletdev/inlet/db"
	"github.com/inletdev/inlet/impl/limit"
)

// A webhook is one attempt at a send_webhook step.
type webhook struct {
	step, attempt int
	url           string
	id            string // the same for every attempt
	at            time.Time
	signature     string
	payload       []byte
}

// payload of a webhook.
type payload struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"`
	Data      payloadData `json:"data"`
}

type payloadData struct {
	MotionID     int64   `json:"motionId"`
	EnrollmentID int64   `json:"enrollmentId"`
	Step         int     `json:"step"` // from 1
	CompanyID    int64   `json:"companyId"`
	ContactIDs   []int64 `json:"contactIds"`
}

// newWebhook writes and signs an attempt at a step, by the scheme of Standard
// Webhooks (https://www.standardwebhooks.com).
func newWebhook(n db.Enrollment, step int, to string, now time.Time) (*webhook, error) {
	w := &webhook{step: step, attempt: n.Attempts + 1, url: to, id: fmt.Sprintf("msg_%d_%d", n.ID, step+1), at: now}
	contacts := n.Contacts
	if contacts == nil {
		contacts = []int64{}
	}
	var err error
	w.payload, err = json.Marshal(payload{
		Type: "motion.webhook", Timestamp: now.UTC().Format("2006-01-02T15:04:05.000Z"),
		Data: payloadData{MotionID: n.Motion, EnrollmentID: n.ID, Step: step + 1, CompanyID: n.Company, ContactIDs: contacts},
	})
	if err != nil {
		return nil, err
	}
	signer, err := standardwebhooks.NewWebhook(n.WebhookSecret)
	if err != nil {
		return nil, err
	}
	w.signature, err = signer.Sign(w.id, now, w.payload)
	return w, err
}

// send makes the attempt. A problem says why it did not succeed, final that none
// will: the address is not one that webhooks are sent to, or says that it is gone.
func (w *webhook) send(ctx context.Context, client *http.Client) (problem string, final bool) {
	if to, err := url.Parse(w.url); err != nil || to.Scheme != "https" || to.Host == "" {
		return "The webhook's address is no https address.", true
	}
	ctx, cancel := context.WithTimeout(ctx, limit.WebhookAttempt)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(w.payload))
	if err != nil {
		return "The webhook's address is no https address.", true
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Inlet")
	request.Header.Set(standardwebhooks.HeaderWebhookID, w.id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(w.at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, w.signature)
	response, err := client.Do(request)
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return "The webhook's address leads into a private network.", true
	case err != nil:
		return "The webhook could not be delivered: no answer came.", false
	}
	defer response.Body.Close()                                //nolint:errcheck // it was read as far as it matters
	io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) //nolint:errcheck // the connection is used again if it can be
	switch {
	case response.StatusCode >= 200 && response.StatusCode < 300:
		return "", false
	case response.StatusCode == http.StatusGone:
		return "The webhook's receiver answered 410: it takes no more.", true
	}
	return fmt.Sprintf("The webhook's receiver answered %03d.", response.StatusCode), false
}

// webhookClient reaches public addresses and, of others, these networks. What an
// address leads to is checked when it is dialed, so that no name can stand for
// one address and then for another, and redirects are not followed.
func webhookClient(networks []netip.Prefix) *http.Client {
	var v4, v6 []netip.Prefix
	for _, n := range networks {
		if n.Addr().Is4() {
			v4 = append(v4, n)
		} else {
			v6 = append(v6, n)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: limit.WebhookConnect, Control: guard.Safe}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: limit.WebhookHandshake, ResponseHeaderTimeout: limit.WebhookAttempt,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
