package trace

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestWhereNothingIsRecordedASpanCostsNothing(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 1)
	var off *Tracer
	if n := testing.AllocsPerRun(1000, func() {
		within, root := off.Root(ctx, "root", Server)
		linked, group := off.Linked(within, "linked", Internal, nil)
		below, child := Child(linked, "child")
		_, call := Call(Under(below, child), "call")
		Fail(call, "kind")
		Link(below, group)
		for _, span := range []Span{call, child, group, root} {
			span.End()
		}
		if Carry(below) != nil {
			t.Error("what is not recorded is carried")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWhatIsCarriedIsTheSpan(t *testing.T) {
	id, span := trace.TraceID{1, 2, 15: 3}, trace.SpanID{4, 7: 5}
	stored := append(append([]byte(nil), id[:]...), span[:]...)
	if sc, ok := Carried(stored); !ok || sc.TraceID() != id || sc.SpanID() != span || !sc.IsSampled() {
		t.Errorf("it becomes %+v", sc)
	}
	for _, broken := range [][]byte{nil, {}, stored[:23], append(stored, 0), make([]byte, 24)} {
		if sc, ok := Carried(broken); ok {
			t.Errorf("%x becomes %+v", broken, sc)
		}
	}
}
