/** More about an AmuxError. */
export interface ErrorDetails {
  hint?: string | undefined;
  runId?: string | undefined;
  exitCode?: number | undefined;
  inputLine?: number | undefined;
}

/**
 * Something that amux refused or could not do. code is one of the error codes in
 * docs/events.md, or PROGRAM_NOT_FOUND; hint is the way out, or empty.
 */
export class AmuxError extends Error {
  override readonly name = "AmuxError";
  readonly code: string;
  /** What happened, without code and hint. */
  readonly text: string;
  readonly hint: string;
  runId: string | undefined;
  /** That of the amux command, if one ended. */
  exitCode: number | undefined;
  /** The number of the input line, from 1, that amux did not accept. */
  readonly inputLine: number | undefined;

  constructor(code: string, text: string, details: ErrorDetails = {}) {
    super(`${text} (${code})` + (details.hint ? `; ${details.hint}` : ""));
    this.code = code;
    this.text = text;
    this.hint = details.hint ?? "";
    this.runId = details.runId;
    this.exitCode = details.exitCode;
    this.inputLine = details.inputLine;
  }

  /** Makes an error of a line of type error; undefined if the value is something else. */
  static fromJson(value: unknown): AmuxError | undefined {
    if (typeof value !== "object" || value === null || "seq" in value) return undefined;
    const line = value as Record<string, unknown>;
    if (line["type"] !== "error") return undefined;
    const text = (name: string): string | undefined => {
      const member = line[name];
      return typeof member === "string" && member !== "" ? member : undefined;
    };
    const inputLine = line["input_line"];
    return new AmuxError(text("code") ?? "INTERNAL", text("message") ?? "amux reported an error", {
      hint: text("hint"),
      runId: text("run_id"),
      inputLine: typeof inputLine === "number" ? inputLine : undefined,
    });
  }

  /** Makes an error of a line of amux's stderr; undefined if the line is something else. */
  static fromLine(line: string): AmuxError | undefined {
    if (!line.startsWith("{")) return undefined;
    try {
      return AmuxError.fromJson(JSON.parse(line));
    } catch {
      return undefined;
    }
  }
}
