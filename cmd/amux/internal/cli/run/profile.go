package run

// applyProfile takes what only a profile sets from it, where no flag does. Its rules count
// beside those of the flags.
func (r *request) applyProfile() {
	only, spec := r.settings.Only, &r.spec
	spec.Profile = only.Name
	if spec.MaxTurns == 0 {
		spec.MaxTurns = only.MaxTurns
	}
	if spec.MaxCost == 0 {
		spec.MaxCost = only.MaxCost
	}
	if spec.MaxTokens == 0 {
		spec.MaxTokens = only.MaxTokens
	}
	if spec.Driver == "" {
		spec.Driver = only.Driver
	}
	spec.AllowRules = append(spec.AllowRules, only.Allow...)
	spec.DenyRules = append(spec.DenyRules, only.Deny...)
}
