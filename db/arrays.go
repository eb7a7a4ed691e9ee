package db

import (
	"database/sql/driver"
	"encoding/binary"

	"github.com/lib/pq"
	"github.com/lib/pq/oid"
)

// texts and ints are arrays for PostgreSQL. Of nothing they are empty, where pq
// makes a nil slice null.
func texts(all []string) pq.StringArray {
	if all == nil {
		return pq.StringArray{}
	}
	return all
}

func ints(all []int64) pq.Int64Array {
	if all == nil {
		return pq.Int64Array{}
	}
	return all
}

// The arrays that carry events travel in PostgreSQL's binary format, which costs
// both sides half of what text does. The element type must be the parameter's
// own. A nil array is null.
type (
	bigintArray   []int64
	integerArray  []int64
	smallintArray []int64
	uuidArray     [][16]byte
	textArray     []string
)

// Value gives a bigint[].
func (a bigintArray) Value() (driver.Value, error) {
	return binaryArray(oid.T_int8, a, 8, func(b []byte, v int64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
	}), nil
}

// Value gives an integer[].
func (a integerArray) Value() (driver.Value, error) {
	return binaryArray(oid.T_int4, a, 4, func(b []byte, v int64) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(v))
	}), nil
}

// Value gives a smallint[].
func (a smallintArray) Value() (driver.Value, error) {
	return binaryArray(oid.T_int2, a, 2, func(b []byte, v int64) []byte {
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, 2), uint16(v))
	}), nil
}

// Value gives a uuid[].
func (a uuidArray) Value() (driver.Value, error) {
	return binaryArray(oid.T_uuid, a, 16, func(b []byte, v [16]byte) []byte {
		return append(binary.BigEndian.AppendUint32(b, 16), v[:]...)
	}), nil
}

// Value gives a text[].
func (a textArray) Value() (driver.Value, error) {
	size := 0
	for _, s := range a {
		size += len(s)
	}
	return binaryArray(oid.T_text, a, size/max(1, len(a))+1, func(b []byte, v string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}), nil
}

// binaryArray is what array_recv reads: dimensions, a flag for nulls, the type
// of the elements; then length and lower bound of the one dimension, and every
// element behind its length.
func binaryArray[T any](element oid.Oid, all []T, size int, put func([]byte, T) []byte) driver.Value {
	if all == nil {
		return nil
	}
	dimensions := uint32(1)
	if len(all) == 0 {
		dimensions = 0
	}
	b := make([]byte, 0, 20+len(all)*(4+size))
	b = binary.BigEndian.AppendUint32(b, dimensions)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(element))
	if dimensions == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, v := range all {
		b = put(b, v)
	}
	return b
}

// filled makes an empty array of a nil one, which would be null.
func filled[A ~[]T, T any](column A) A {
	if column == nil {
		return A{}
	}
	return column
}

// given makes a column null that no event gives.
func given[A ~[]T, T comparable](column A) A {
	var none T
	for _, v := range column {
		if v != none {
			return column
		}
	}
	return nil
}
