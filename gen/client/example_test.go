package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/inletdev/inlet/gen/client"
)

// A client that authenticates with a key and sends again what met a limit.
func ExampleWithRetries() {
	asked := 0
	inlet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error": {"code": "events_rate_limited", "message": "…", "param": null}}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id": "order-1001", "status": "accepted", "event_id": "evt_06dkz5a3q1yfhbx9n8m2r7c4tw"}`)
	}))
	defer inlet.Close()

	c, err := client.NewClientWithResponses(inlet.URL,
		client.WithAPIKey("amp_…"),
		client.WithRetries(client.Retry{}))
	if err != nil {
		panic(err)
	}

	var globex client.CompanyReference
	if err := globex.FromCompanyByDomain(client.CompanyByDomain{Domain: "globex.com"}); err != nil {
		panic(err)
	}
	resp, err := c.CreateEventWithResponse(context.Background(), nil, client.EventInput{
		Id:      "order-1001",
		Name:    "order_placed",
		Company: &globex,
	})
	switch {
	case err != nil:
		fmt.Println("not reached:", err)
	case resp.JSON202 != nil:
		fmt.Println(resp.JSON202.Status, "after", asked, "requests")
	case resp.JSON422 != nil:
		fmt.Println("refused:", resp.JSON422.Error.Code)
	default:
		fmt.Println(resp.Status())
	}
	// Output: accepted after 2 requests
}
