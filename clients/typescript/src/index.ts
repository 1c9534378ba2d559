export type * as api from "./api.js";
export { check, Client, isKnown, Run, type Result, type RunInfo } from "./client.js";
export { AmuxError, type ErrorDetails } from "./errors.js";
export { HTTPTransport, type HTTPOptions } from "./http.js";
export { findProgram, ProcessTransport, type ProcessOptions } from "./process.js";
export type { Channel, ListOptions, RunSpec, Transport } from "./transport.js";
export * from "./types.js";
