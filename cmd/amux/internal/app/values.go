package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
)

// ParseWhen reads a time of the past: how long ago it was, such as 12h or 7d, or a date,
// which begins at midnight here.
func ParseWhen(flag, text string, now time.Time) (time.Time, error) {
	days, isDays := strings.CutSuffix(text, "d")
	n, err := strconv.ParseFloat(days, 64)
	d, durationErr := time.ParseDuration(text)
	date, dateErr := time.ParseInLocation(time.DateOnly, text, now.Location())
	switch {
	case isDays && err == nil && n > 0 && n < 1e5:
		return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
	case durationErr == nil && d > 0:
		return now.Add(-d), nil
	case dateErr == nil:
		return date, nil
	}
	return time.Time{}, Usagef("invalid --%s %q: expected a duration such as 12h or 7d, or a date such as 2026-11-20", flag, text)
}

// OneOfFlag is the value of a flag that takes one of several words.
type OneOfFlag struct {
	to     *string
	values []string
}

// OneOf returns a flag value that sets to.
func OneOf(to *string, values ...string) *OneOfFlag { return &OneOfFlag{to, values} }

// String returns the word; empty if the flag was not given.
func (v *OneOfFlag) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

// Type is the placeholder in help.
func (v *OneOfFlag) Type() string { return "WORD" }

// Set takes one of the words.
func (v *OneOfFlag) Set(text string) error {
	if !slices.Contains(v.values, text) {
		return fmt.Errorf("expected one of %s", strings.Join(v.values, ", "))
	}
	*v.to = text
	return nil
}

// DurationFlag is the value of a flag that takes a duration with a unit.
type DurationFlag struct {
	D     time.Duration
	Given bool
}

// String is empty: help names the default in words.
func (v *DurationFlag) String() string { return "" }

// Type is the placeholder in help.
func (v *DurationFlag) Type() string { return "DURATION" }

// Set takes a duration that is not negative.
func (v *DurationFlag) Set(text string) (err error) {
	v.D, err = settings.ParseDuration(text)
	v.Given = err == nil
	return err
}
