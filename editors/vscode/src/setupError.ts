// Owns the errors of finding and installing a server, with advice and buttons.

export type Remedy = "settings" | "settings.json" | "log" | "retry";

/** An error with a sentence about it, advice, and the buttons to offer. */
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
    super("You cancelled the installation of the server.", "Restart the server to install it.", ["retry"]);
    this.name = "CancelledSetup";
  }
}
