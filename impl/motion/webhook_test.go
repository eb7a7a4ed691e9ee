package motion

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// receiver answers every webhook with the same bytes.
type receiver struct {
	answer string
	unread int // bytes of the body that nobody read
}

func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(r.answer)), request)
	if err != nil {
		return nil, err
	}
	response.Body = &counted{response.Body, r}
	return response, nil
}

type counted struct {
	io.ReadCloser
	of *receiver
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.of.unread -= n
	return n, err
}

var problems = regexp.MustCompile(`^(The webhook could not be delivered: no answer came\.|The webhook's receiver answered [0-9]{3}\.|The webhook's receiver answered 410: it takes no more\.)$`)

// FuzzWebhookAnswer has a receiver answer a webhook with any bytes: it is delivered
// if the status says so and given up if that is 410, nothing that the receiver wrote
// is told, and no more than 64 KB of it are read. To an address that is no https
// address nothing is sent.
func FuzzWebhookAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, answer, address string, repeat int) {
		const most = 64 << 10
		answer += strings.Repeat(answer[strings.LastIndexByte(answer, '\n')+1:], int(uint(repeat)%512))
		r := &receiver{answer: answer, unread: len(answer)}
		w := webhook{id: "msg_1_1", url: "https://hooks.acme.example/in", at: time.Unix(1795262400, 0), signature: "v1,x", payload: []byte("{}")}
		problem, final := w.send(t.Context(), &http.Client{Transport: r, CheckRedirect: webhookClient(nil).CheckRedirect})
		read, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		status := 0
		if err == nil {
			status = read.StatusCode
		}
		if (problem == "") != (200 <= status && status < 300) || final != (status == http.StatusGone) {
			t.Errorf("%q, with the status %d, is told as %q, final: %t", answer, status, problem, final)
		}
		if problem != "" && !problems.MatchString(problem) {
			t.Errorf("%q is told as %q", answer, problem)
		}
		if taken := len(answer) - r.unread; taken > most {
			t.Errorf("%d bytes of an answer are read", taken)
		}

		sent := &receiver{answer: "HTTP/1.1 204 No Content\r\n\r\n"}
		w.url = address
		problem, final = w.send(t.Context(), &http.Client{Transport: sent})
		if isHTTPS := len(address) > 8 && strings.EqualFold(address[:8], "https://"); problem == "" && !isHTTPS || problem != "" && strings.Contains(problem, address) && address != "" && len(address) > 8 {
			t.Errorf("to %q: %q, final: %t", address, problem, final)
		}
	})
}
