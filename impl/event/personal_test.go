package event

import "testing"

func TestPersonalValuesAreFoundAndOthersAreNot(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ada@example.com", "an e-mail address"},
		{"mail Ada <ada.l+x@mail.example.co.uk> now", "an e-mail address"},
		{"mailto:o'neil@exämple.de", "an e-mail address"},
		{"用户@例子.公司", "an e-mail address"},
		{"next=/u?e=ada%40example.com", "an e-mail address"},
		{"ada＠example.com", "an e-mail address"},
		{"git@github.com:org/repo", "an e-mail address"},
		{"ada@example.com.", "an e-mail address"},
		{"x@y@example.org", "an e-mail address"},
		{"ada@xn--bcher-kva.example", "an e-mail address"},
		{"@mention", ""},
		{"@scope/package", ""},
		{"@scope/package@1.2.3", ""},
		{"react@18.2.rc1", ""},
		{"a@b", ""},
		{"user@", ""},
		{"user@localhost", ""},
		{"a@b.c", ""},
		{"meet @ example.com", ""},
		{"root@10.0.0.1", ""},

		{"4111111111111111", "a card number"},
		{"paid with 4111 1111 1111 1111 today", "a card number"},
		{"4111-1111-1111-1111", "a card number"},
		{"3782 822463 10005", "a card number"},
		{"5555555555554444", "a card number"},
		{"2223003122003222", "a card number"},
		{"6011111111111117", "a card number"},
		{"3530111333300000", "a card number"},
		{"30569309025904", "a card number"},
		{"6200000000000005", "a card number"},
		{"2200770212727079", "a card number"},
		{"order 17, card 4111111111111111", "a card number"},
		{"17 4111111111111111", "a card number"},
		{"4111 1111 1111 1111 12/28", "a card number"},
		{"4111111111111112", ""},           // check digit
		{"1111111111111117", ""},           // no issuer
		{"41111111111111111111111111", ""}, // part of a longer run
		{"4111  1111  1111  1111", ""},     // two spaces
		{"x4111111111111111", ""},          // part of a word
		{"4111111111111111x", ""},          //
		{"1763690000123", ""},              // milliseconds
		{"550e8400-e29b-41d4-a716-446655440000", ""},
		{"+49 30 901820", ""},
		{"DE89 3704 0044 0532 0130 00", ""}, // an IBAN
		{"1Z999AA10123456784", ""},          // a tracking number
		{"2026-11-21 10:30:00", ""},
		{"", ""},
	} {
		if got := personalValue(&Property{Type: TypeString, Text: c.text}); got != c.want {
			t.Errorf("%q looks like %q, want %q", c.text, got, c.want)
		}
	}
}

func TestNumbersAreJudgedByTheirValue(t *testing.T) {
	for literal, want := range map[string]string{
		"4111111111111111":     "a card number",
		"4111111111111111.0":   "a card number",
		"4.111111111111111e15": "a card number",
		"4111111111111112":     "",
		"4111111111111111.5":   "",
		"1763690000123":        "",
		"1e300":                "",
		"1e-300":               "",
		"0":                    "",
		"-0.0":                 "",
	} {
		if got := personalValue(&Property{Type: TypeNumber, Text: literal}); got != want {
			t.Errorf("%s looks like %q, want %q", literal, got, want)
		}
	}
}

func FuzzPersonalValueEndsForAnyText(f *testing.F) {
	for _, seed := range []string{"a@b.co", "4111 1111 1111 1111", "%40", "＠", "1-2-3-4-5-6-7-8-9-0-1-2-3-4-5-6-7-8-9-0-1-2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := personalValue(&Property{Type: TypeString, Text: text})
		if found == "" && personalValue(&Property{Type: TypeString, Text: text + " ada@example.com"}) == "" {
			t.Errorf("an address at the end of %q is missed", text)
		}
	})
}
