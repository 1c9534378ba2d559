package rawio

// CloseOnExec does nothing: handles are inherited by list.
func CloseOnExec() {}
