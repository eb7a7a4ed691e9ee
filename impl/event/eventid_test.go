package event

import (
	"regexp"
	"testing"

	"github.com/google/uuid"
)

func TestPublicIDsAreUUIDsThatRiseWithTimeAndRevealNoWorkspace(t *testing.T) {
	shape := regexp.MustCompile(`^evt_[0-9a-hjkmnp-tv-z]{26}$`)
	const number = int64(1795227647788)<<20 | 7
	id := PublicID(1, number)
	if !shape.MatchString(id) {
		t.Errorf("%s is not of the documented shape", id)
	}
	raw, err := crockford.DecodeString(id[len("evt_"):])
	if err != nil {
		t.Fatal(err)
	}
	u, err := uuid.FromBytes(raw)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		t.Errorf("%s is %v, version %d: %v", id, u, u.Version(), err)
	}
	if seconds, _ := u.Time().UnixTime(); seconds != 1795227647 {
		t.Errorf("its time is %d", seconds)
	}
	before := id
	for n := number + 1; n < number+5000; n += 7 {
		if next := PublicID(1, n); next <= before {
			t.Fatalf("%s does not sort behind %s", next, before)
		} else {
			before = next
		}
	}
	if other := PublicID(2, number); other == id || other[:len(other)-11] != id[:len(id)-11] {
		t.Errorf("another workspace's event of that instant is %s, this one %s", other, id)
	}
}
