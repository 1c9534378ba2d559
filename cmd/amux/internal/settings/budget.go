package settings

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Budget is a table of [budgets].
type Budget struct {
	Kind   string // run, day, tag, project; "" for a table that there is not
	Of     string // the tag, or the project's absolute folder
	Per    string // day, month or total: what a tag or a project may spend in
	Cost   float64
	Tokens int64
}

// budgetOf reads the head of a table of budgets.
func budgetOf(table *unstable.Node) (b Budget, ok bool) {
	var parts []string
	for it := table.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
	}
	if len(parts) == 0 || parts[0] != budgetsTable {
		return b, false
	}
	switch {
	case len(parts) == 2 && (parts[1] == "run" || parts[1] == "day"):
		b.Kind = parts[1]
	case len(parts) == 3 && parts[1] == "tags" && parts[2] != "":
		b.Kind, b.Of, b.Per = "tag", parts[2], "day"
	case len(parts) == 3 && parts[1] == "projects" && filepath.IsAbs(parts[2]):
		b.Kind, b.Of, b.Per = "project", filepath.Clean(parts[2]), "day"
	}
	return b, true
}

// set sets a key of a budget.
func (b *Budget) set(field string, v *unstable.Node) error {
	text := strings.ReplaceAll(string(v.Data), "_", "")
	switch field {
	case "cost":
		usd, err := strconv.ParseFloat(text, 64)
		if v.Kind != unstable.Float && v.Kind != unstable.Integer || err != nil || !(usd > 0) || math.IsInf(usd, 0) {
			return errors.New("expected dollars, such as 2.50")
		}
		b.Cost = usd
	case "tokens":
		n, err := strconv.ParseInt(text, 10, 64)
		if v.Kind != unstable.Integer || err != nil || n < 1 {
			return errors.New("expected a number, such as 2_000_000")
		}
		b.Tokens = n
	case "per":
		if b.Per == "" {
			return errors.New("only budgets of tags and projects have it")
		}
		switch per := string(v.Data); {
		case v.Kind == unstable.String && (per == "day" || per == "month" || per == "total"):
			b.Per = per
		default:
			return errors.New("expected one of day, month, total")
		}
	default:
		return errors.New("unknown key; the keys are cost, tokens and per")
	}
	return nil
}
