interface Closable {
  close(): void | Promise<void>
}

/** What was opened, closed in reverse order; nothing is left when something in between fails. */
export class Closers {
  readonly #opened: Closable[] = []

  /** Remembers `part` and gives it back. */
  keep<T extends Closable>(part: T): T {
    this.#opened.push(part)
    return part
  }

  /** Closes everything, last opened first; a second call does nothing. Throws what the first failing one threw. */
  async close(): Promise<void> {
    const errors: unknown[] = []
    for (const part of this.#opened.splice(0).toReversed()) {
      try {
        await part.close()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }
}

/** What `start` gives, or nothing at all: when it throws, what it had opened is closed first. */
export async function whole<T>(start: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = new Closers()
  try {
    return await start(closers)
  } catch (error) {
    await closers.close()
    throw error
  }
}
