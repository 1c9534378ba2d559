// Package docs keeps the pages that are made of what the built plugins say of
// themselves.
package docs
