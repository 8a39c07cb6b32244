// Owns waiting that a signal ends, whatever is waited for.

/** What `promise` gives; rejects as soon as `signal` aborts, also where `promise` never ends. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Where the signal wins nobody waits for the other one's end any more.
  promise.catch(() => undefined);
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason as Error);
    };
  });
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
