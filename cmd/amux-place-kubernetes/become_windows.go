package main

import "errors"

// become refuses: amux has no runs at other places on Windows.
func become(string, []string) error { return errors.New("this needs Linux or macOS") }
