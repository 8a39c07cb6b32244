// Owns the errors of finding and setting up a server, with what the user can do about each.

export type Remedy = "settings" | "log" | "retry";

/** A sentence that says what is wrong, one that says what to do, and the buttons to offer. */
export class SetupError extends Error {
  constructor(
    message: string,
    readonly advice: string,
    readonly remedies: readonly Remedy[],
  ) {
    super(message);
    this.name = "SetupError";
  }
}

export class CancelledSetup extends SetupError {
  constructor() {
    super("The set-up was cancelled.", "Restart the server to set it up.", ["retry"]);
    this.name = "CancelledSetup";
  }
}
