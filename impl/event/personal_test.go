package event

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNamesOfPersonalDataAreKnown(t *testing.T) {
	for name := range strings.FieldsSeq(`email e_mail phone mobile name first_name last_name full_name address street zip
		postcode ssn password secret token api_key card iban dob birth_date ip ip_address`) {
		if !personalProperty(name) {
			t.Errorf("%s is not on the list", name)
		}
	}
	for _, name := range []string{"plan", "names", "company_name", "email_opened", "ip2", "tokens", "cards", ""} {
		if personalProperty(name) {
			t.Errorf("%s is on the list", name)
		}
	}
}

func TestEmailAddressesAreFoundAnywhereInAText(t *testing.T) {
	for _, text := range []string{
		"ada@example.com",
		"ADA@EXAMPLE.COM",
		"ada.l+x@mail.example.co.uk",
		"mail Ada <ada@example.com> now",
		"(ada@example.com)",
		"ada@example.com.",
		"ada@example.com,bob@example.com",
		"to:ada@example.com;",
		"ada@example.com-2026",
		"ada@example.com_old",
		"mailto:o'neil@exämple.de",
		`"ada lovelace"@example.com`,
		"ada!@example.com",
		"_@example.com",
		"1@163.com",
		"用户@例子.公司",
		"पता@उदाहरण.भारत",
		"ada@xn--bcher-kva.xn--p1ai",
		"ada@BÜCHER.XN--P1AI",
		"next=/u?e=ada%40example.com",
		"ada%2Bx%40example.com",
		"%D0%B0%40example.com",
		"ada＠example.com",
		"ada﹫example.com",
		"@ada@mastodon.social",
		"x@y@example.org",
		"git@github.com:org/repo",
		"https://ada:secret@intranet.example.com/",
		"ada@2x.com",
		strings.Repeat("@ ", 200) + "ada@example.com",
	} {
		if !holdsEmail(text) {
			t.Errorf("%q is said to hold no e-mail address", text)
		}
	}
}

func TestWhatOnlyHasAnAtSignIsNoEmailAddress(t *testing.T) {
	for _, text := range []string{
		"", "@", "@@", "user@", "@example.com", "a@b", "user@localhost", "a@b.c", "a@b.", "a@.com", "a@b..com",
		"@mention", "hi @ada.lovelace!", `said "@ada.lovelace"`, "(@ada.lovelace)", "**@ada.lovelace**", "cc:@ada.lovelace",
		"meet @ example.com", "5 @ 3.99", "3@4.50",
		"https://medium.com/@ada.lovelace/on-engines", "https://www.tiktok.com/@ada.lovelace?lang=en",
		"https%3A%2F%2Fmedium.com%2F%40ada.lovelace", "/search?q=@ada.lovelace&from=@bob.jones",
		"https://www.google.com/maps/@52.5200,13.4050,15z",
		"@scope/package", "@scope/package.js", "@scope/package@1.2.3", "react@18.2.0", "react@18.2.rc1", "react@18.2.0-beta.1",
		"https://cdn.example.com/npm/jquery@3.6.0/dist/jquery.min.js", "golang.org/x/net@v0.62.0",
		"busybox@sha256:9f1b", "logo@2x.png", "/img/logo@3x.JPEG?v=2",
		"root@10.0.0.1", "root@10.0.0.1:22", "user@my_host.com", "java.lang.Object@1a2b3c", "a@xn--p1ai",
		"100%40", "%40example.com", "a%4example.com", "＠example.com",
	} {
		if holdsEmail(text) {
			t.Errorf("%q is said to hold an e-mail address", text)
		}
	}
}

func TestCardNumbersAreFoundAnywhereInAText(t *testing.T) {
	for _, text := range []string{
		"4111111111111111",
		"4111 1111 1111 1111",
		"4111-1111-1111-1111",
		"4111 - 1111 -- 1111  1111",
		"4111\u00a01111\u20131111\u20091111",
		"4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
		"paid with 4111 1111 1111 1111 today",
		"card:4111111111111111.",
		"visa_4111111111111111",
		"(4111111111111111)",
		"4111111111111111,5555555555554444",
		"17,4111111111111111",
		"order 17, card 4111111111111111",
		"17 4111111111111111",
		"17 4111 1111 1111 1111 12/28",
		"4111 1111 1111 1111 12 28",
		"123456789012345678901234567890 4111111111111111",
		"3782 822463 10005",
		"3056 930902 5904",
		"DE75 5121 2541 2248 2447 57", // no IBAN, for its check digits are wrong
	} {
		if !holdsCard(text) {
			t.Errorf("%q is said to hold no card number", text)
		}
	}
}

func TestOtherNumbersAreNoCardNumbers(t *testing.T) {
	for _, text := range []string{
		"", "4", "4111111111111112", "4111 1111 1111 1112",
		"41234567890123456787",                      // 20 digits
		"41111111111111111111111111",                // a longer run that begins with one
		"00004111111111111111111111",                // and one that holds one
		"14111111111111111", "00004111111111111111", // and two that end in one
		"in 41111111111111111111111",
		"x4111111111111111", "4111111111111111x", "é4111111111111111", "4111111111111111é", "1Z4111111111111111",
		"0.4111111111111111", "1.5512345678901231", "+4111111111111111", "+4111 11111 1111111",
		"4111/1111/1111/1111", "4111.1111.1111.1111", "4111\n1111\n1111\n1111",
		"1763690000122", "1763690000122000", // times with a valid check digit
		"20261121103000123", "2026-11-21 10:30:00.123", "2026-11-21",
		"1123456789012345", // an order number with a valid check digit
		"550e8400-e29b-41d4-a716-446655440000",
		"55038400-4129-4711-a716-446655440000", // its first digits pass for a card number
		"id=55038400-4129-4711-a716-446655440000",
		"DE27 5121 2541 2248 2447 57", "IBAN GB16 NWBK 3000 3416 8587 83, thanks", // and in these
		"DE27512125412248244757", "DE89 3704 0044 0532 0130 00",
		"+49 30 901820", "+49 1512 3456789", "1Z999AA10123456784", "JD014600003827364783", "192.168.100.200",
	} {
		if holdsCard(text) {
			t.Errorf("%q is said to hold a card number", text)
		}
	}
}

func TestCardNumbersAreThoseOfKnownIssuersInTheirLengths(t *testing.T) {
	for _, card := range []string{
		"4222222222222", "4123456789012349", "4123456789012345677", // Visa
		"5112345678901235", "5512345678901231", "2221123456789014", "2720123456789010", // Mastercard
		"341234567890127", "371234567890120", // American Express
		"6011123456789019", "64412345678901239", "6512345678901234562", // Discover
		"36123456789013", "3812345678901233", "30512345678906", "30951234567897", // Diners Club
		"3528123456789012", "3589123456789018", // JCB
		"6212345678901232", "6212345678901234569", // UnionPay
		"5012345678908", "56123456789018", "630412345678903", "675912345678901237", "6762123456789012346", // Maestro
		"2204123456789015", "6012345678901234", "8212345678901238", "9792123456789018", // Mir, RuPay, Troy
	} {
		if !isCard(card) {
			t.Errorf("%s is said to be no card number", card)
		}
	}
	for _, other := range []string{
		"41234567890120", "412345678901233", "41234567890123458", // Visa does not come in these lengths
		"2220123456789015", "2721123456789019", "511234567890121", // beside Mastercard
		"3412345678901237", "3590123456789015", "621234567890128", "2205123456789014",
		"501234567896", "1763690000122", "0000000000000000", "1123456789012345",
	} {
		if isCard(other) {
			t.Errorf("%s is said to be a card number", other)
		}
	}
}

func TestNumbersAreCardNumbersByTheirValue(t *testing.T) {
	for literal, want := range map[string]bool{
		"4111111111111111":       true,
		"4111111111111111.0":     true,
		"4.111111111111111e15":   true,
		"4.111111111111111000E5": false,
		"411111111111111.1e1":    true,
		"41111111111111110e-1":   true,
		"4111111111111112":       false,
		"4111111111111111.5":     false,
		"0.4111111111111111":     false,
		"-4111111111111111":      false,
		"41111111111111110":      false,
		"1763690000122":          false,
		"4222222222222":          true,
		"4e15":                   false,
		"1e300":                  false,
		"1e-300":                 false,
		"0":                      false,
		"-0.0":                   false,
		"0e-999999999999999999":  false,
	} {
		if got := personalValue(&Property{Type: TypeNumber, Text: literal}) != ""; got != want {
			t.Errorf("%s is said to be a card number: %t, want %t", literal, got, want)
		}
	}
	if personalValue(&Property{Type: TypeBool, Text: "true"}) != "" {
		t.Error("true looks personal")
	}
}

// FuzzPersonal plants an address and a card number beside any text, where they
// must be found, and holds what is found in the text itself to a plain reading of
// the same rules that takes its time.
func FuzzPersonal(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		if !holdsEmail(text + " ada@example.com") {
			t.Errorf("the address at the end of %q is missed", text)
		}
		if !holdsEmail("ada@example.com " + text) {
			t.Errorf("the address at the start of %q is missed", text)
		}
		// Two dots set the number apart from whatever the text is.
		if !holdsCard(text + " .. 4111 1111 1111 1111") {
			t.Errorf("the card number at the end of %q is missed", text)
		}
		if !holdsCard("4111-1111-1111-1111: " + text) {
			t.Errorf("the card number at the start of %q is missed", text)
		}
		if !strings.ContainsAny(text, "@%＠﹫") && holdsEmail(text) {
			t.Errorf("%q holds an e-mail address without an at sign", text)
		}
		if plainEmail.MatchString(text) && !special.MatchString(text) && !holdsEmail(text) {
			t.Errorf("the address in %q is missed", text)
		}
		if got, want := holdsCard(text), holdsCardSlowly(text); got != want {
			t.Errorf("%q holds a card number: %t, want %t", text, got, want)
		}
	})
}

var (
	plainEmail = regexp.MustCompile(`[A-Za-z0-9_]@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}([^\pL\pM\p{Nd}]|$)`)
	special    = regexp.MustCompile(`@[1-9]x\.|%[0-9A-Fa-f]{2}@`) // sizes of images, and encoded characters that are none of an address
)

// holdsCardSlowly joins every run of digits with each that follows it.
func holdsCardSlowly(s string) bool {
	runs := regexp.MustCompile(`[0-9]+`).FindAllStringIndex(s, -1)
	between := regexp.MustCompile(`^[ \-\p{Zs}\p{Pd}]*$`)
	for i, first := range runs {
		digits := ""
		for k := i; k < len(runs); k++ {
			if k > i && !between.MatchString(s[runs[k-1][1]:runs[k][0]]) {
				break
			}
			if digits += s[runs[k][0]:runs[k][1]]; len(digits) > 19 {
				break
			}
			next, _ := utf8.DecodeRuneInString(s[runs[k][1]:])
			if isCard(digits) && !unicode.IsLetter(next) && !isContinued(s[:first[0]]) && !inUUID(s, first[0]) && !inIBAN(s, first[0], runs[k][1]) {
				return true
			}
		}
	}
	return false
}

func BenchmarkPersonalValueOfManyGroups(b *testing.B) {
	p := Property{Type: TypeString, Text: strings.Repeat("4-", 256)}
	b.ReportAllocs()
	for b.Loop() {
		personalValue(&p)
	}
}
