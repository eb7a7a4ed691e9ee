package event

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// crockford is base 32 without the letters that look like others, lower case.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// PublicID gives the event_id of an event: evt_ and a version 7 UUID
// (RFC 9562) in Crockford's base 32. The UUID is made from the event's number,
// so it needs no storage: 48 bits of time, the 20 bits that order events within
// the millisecond, and 54 bits of a hash that keep the ids of workspaces apart.
func PublicID(workspace, number int64) string {
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:8], uint64(workspace))
	binary.BigEndian.PutUint64(seed[8:], uint64(number))
	sum := sha256.Sum256(seed[:])

	within := uint64(number) & (1<<20 - 1)
	high := uint64(number)>>20<<16 | 7<<12 | within>>8
	low := 2<<62 | (within&0xff)<<54 | binary.BigEndian.Uint64(sum[:8])>>10
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return string(crockford.AppendEncode(append(make([]byte, 0, 32), "evt_"...), id[:]))
}
