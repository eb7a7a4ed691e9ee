package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// printSBOM takes the modules from the binary itself: what is listed is what was
// linked. Nothing in it depends on when or where it is made.
func printSBOM(binary string, parts []part) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	known := make(map[string]part)
	for _, p := range parts {
		known[p.name] = p
	}
	sum := sha256.Sum256(content)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562, version 8: a hash of our own
	bom := cdx.NewBOM()
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	root := component(cdx.ComponentTypeApplication, "pkg:golang/"+info.Main.Path, info.Main.Path, info.Main.Version)
	root.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	binarySum := sha256.Sum256(content)
	root.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(binarySum[:])}}
	bom.Metadata = &cdx.Metadata{Component: &root}

	goVersion, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	std := component(cdx.ComponentTypeLibrary, "pkg:golang/std@"+goVersion, "std", goVersion)
	std.Licenses = licensesIn(known["std"])
	all := []cdx.Component{std}
	for _, dep := range info.Deps {
		linked := dep
		if dep.Replace != nil {
			linked = dep.Replace
		}
		c := component(cdx.ComponentTypeLibrary, "pkg:golang/"+linked.Path+"@"+linked.Version, linked.Path, linked.Version)
		p, ok := known[dep.Path]
		if !ok {
			return fmt.Errorf("%s is in the binary, and not among its packages", dep.Path)
		}
		c.Licenses = licensesIn(p)
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: linked.Sum}}
		all = append(all, c)
	}
	for _, p := range parts {
		if name, ok := strings.CutPrefix(p.name, "npm:"); ok {
			c := component(cdx.ComponentTypeLibrary, "pkg:npm/"+strings.Replace(name, "@", "%40", 1)+"@"+p.version, name, p.version)
			c.Licenses = licensesIn(p)
			all = append(all, c)
		}
	}
	bom.Components = &all
	return cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

func component(kind cdx.ComponentType, purl, name, version string) cdx.Component {
	return cdx.Component{Type: kind, BOMRef: purl, PackageURL: purl, Name: name, Version: version}
}

func licensesIn(p part) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range p.licenses {
		license := &cdx.License{ID: id}
		if id == "XZ" { // the classifier's name, which SPDX does not have
			license = &cdx.License{Name: "public domain"}
		}
		all = append(all, cdx.LicenseChoice{License: license})
	}
	return &all
}
