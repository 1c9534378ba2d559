package vt_test

import (
	"testing"

	"github.com/amux-dev/amux/internal/vt"
)

func TestColumns(t *testing.T) {
	t.Parallel()
	for want, text := range map[int]string{
		0: "\u0301\u200b\u200d\ufe0f\u20dd\u1160\u2060",
		1: "aéß…→✓─▏" + "\u00ad\uff71\u303f\u2603",
		2: "漢字かな한글ＡＢ✅🚀⚡⭐🦀🏿𠀀🫠🟢",
	} {
		for _, r := range text {
			if got := vt.Columns(r); got != want {
				t.Errorf("%c (%U) takes %d columns, want %d", r, r, got, want)
			}
		}
	}
}
