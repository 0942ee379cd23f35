interface Counted<T> {
  readonly thing: T
  /** What the thing itself uses of its pool. */
  readonly uses: Hold<T>
  holders: number
}

/** What one holder uses of a pool, from its first `get` until its release. */
export interface Hold<T> {
  /**
   * The thing with this name; `open` makes it when it has no holder. A thing that needs others of its pool takes them from `uses`,
   * which is released after the thing is closed: a holder that finds the thing open never calls `open`, and so holds nothing for it.
   */
  get(name: string, open: (uses: Hold<T>) => T): T
  /** Releases everything, and closes what has no other holder; a second call does nothing. */
  release(): Promise<void>
}

/**
 * Things that several configurations use, each opened once and closed with the last that uses it: a candidate that is
 * refused lets go of what only it had opened, and what a reload removes goes when the last request of the old is done.
 */
export class RefCountedPool<T> {
  readonly #things = new Map<string, Counted<T>>()
  readonly #close: (thing: T) => void | Promise<void>

  constructor(close: (thing: T) => void | Promise<void>) {
    this.#close = close
  }

  hold(): Hold<T> {
    const held = new Map<string, Counted<T>>()
    return {
      get: (name, open) => {
        const mine = held.get(name)
        if (mine !== undefined) return mine.thing
        let counted = this.#things.get(name)
        if (counted === undefined) this.#things.set(name, (counted = this.#open(open)))
        counted.holders++
        held.set(name, counted)
        return counted.thing
      },
      release: async () => {
        const names = [...held]
        held.clear()
        await Promise.all(names.map(([name, counted]) => this.#letGo(name, counted)))
      },
    }
  }

  #open(open: (uses: Hold<T>) => T): Counted<T> {
    const uses = this.hold()
    try {
      return { thing: open(uses), uses, holders: 0 }
    } catch (error) {
      void uses.release()
      throw error
    }
  }

  async #letGo(name: string, counted: Counted<T>): Promise<void> {
    if (--counted.holders > 0) return
    this.#things.delete(name)
    try {
      await this.#close(counted.thing)
    } finally {
      await counted.uses.release()
    }
  }
}
