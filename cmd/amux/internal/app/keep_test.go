package app

import (
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
)

func TestKeepOf(t *testing.T) {
	for _, c := range []struct {
		set  settings.Keep
		want host.Keep
	}{
		{settings.Keep{}, host.Keep{}},
		{settings.Keep{Runs: new(5), Days: new(10_000), GB: new(1_000_000)}, host.Keep{Runs: 5, Time: 240_000 * time.Hour, Bytes: 1_000_000 << 30}},
	} {
		if got := KeepOf(settings.Settings{Records: settings.Records{Keep: c.set}}); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	none := KeepOf(settings.Settings{Records: settings.Records{Keep: settings.Keep{Runs: new(0), Days: new(0), GB: new(0)}}})
	if none.Runs >= 0 || none.Time >= 0 || none.Bytes >= 0 {
		t.Errorf("0 is %+v, want no limits", none)
	}
}
