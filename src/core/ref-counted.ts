interface Counted<T> {
  readonly thing: T
  /** The holder through which the resource uses others of its pool. */
  readonly uses: Hold<T>
  holders: number
}

/** One holder's references to a pool, from its first `get` until its release. */
export interface Hold<T> {
  /**
   * The resource with this name; `open` creates it when it has no holder. A resource that depends on others of the
   * pool gets them from `uses`, which is released after the resource closes. A holder that finds it open never calls
   * `open`, and so holds no dependency.
   */
  get(name: string, open: (uses: Hold<T>) => T): T
  /** Releases all references and closes resources without another holder; a second call does nothing. */
  release(): Promise<void>
}

/**
 * Resources shared by configurations, opened once and closed with their last holder. A rejected candidate releases
 * what only it had opened; what a reload removes closes after the last request of the old configuration.
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
