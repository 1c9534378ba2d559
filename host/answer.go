package host

import (
	"errors"
	"path/filepath"

	"github.com/amux-dev/amux/host/schema"
	"github.com/amux-dev/amux/pluginapi"
)

// validator is amux-schema, which stands beside amux-shim.
func (o *Options) validator() schema.Program {
	return schema.Program(filepath.Join(filepath.Dir(o.ShimPath), schema.Name+exeSuffix()))
}

// checkSchema refuses what is not a JSON schema; "" stands for no schema.
func (o *Options) checkSchema(text string) error {
	if text == "" {
		return nil
	}
	err := o.validator().Validate(text)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, schema.ErrUnavailable):
		return pluginapi.Errorf(pluginapi.CodeSpawn, "the JSON schema: %w", err).WithHint("see: amux doctor")
	}
	return invalid("the JSON schema cannot be used: %w", err)
}

// answerCheck says why an answer does not match a schema; nil if there is none.
func (o *Options) answerCheck(text string) func(answer string) error {
	if text == "" {
		return nil
	}
	return func(answer string) error { return o.validator().Check(text, answer) }
}
