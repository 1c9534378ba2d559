// Package page tests the page of amux serve --http in Chromium.
package page
