interface Counted<T> {
  readonly thing: T
  holders: number
}

/** What one holder uses of a pool, from its first `get` until it lets go. */
export interface Hold<T> {
  /** The thing with this name; `open` makes it when nobody holds one. */
  get(name: string, open: () => T): T
  /** Lets go of everything, and closes what nobody else holds; a second call does nothing. */
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
        if (counted === undefined) this.#things.set(name, (counted = { thing: open(), holders: 0 }))
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

  async #letGo(name: string, counted: Counted<T>): Promise<void> {
    if (--counted.holders > 0) return
    this.#things.delete(name)
    await this.#close(counted.thing)
  }
}
