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
