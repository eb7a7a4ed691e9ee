package event

import "testing"

const typical = `{"id":"evt-2026-000184467","name":"trial_started","occurred_at":"2026-11-21T02:15:30.123+01:00",` +
	`"company":{"domain":"shop.globex.com"},"contact":{"email":"hank.scorpio@globex.com"},` +
	`"properties":{"plan":"enterprise","seats":250,"amount":1249.50,"annual":true,"source":"pricing-page"}}`

func BenchmarkParse(b *testing.B) {
	body := []byte(typical)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := Parse(body); f != nil {
			b.Fatal(f.Message)
		}
	}
}
