/** A node of a tree of path prefixes: the value at its end, and the next segments. */
interface Node<T> {
  value: T | undefined
  /** Undefined at a leaf, the usual case. */
  next: Map<string, Node<T>> | undefined
}

/**
 * Finds the longest prefix of a path at a segment boundary; `/` is a prefix of every path. The cost depends on the
 * segments of the path, not on the number of prefixes. Of equal prefixes the first counts.
 */
export class RouteTree<T> {
  readonly #root: Node<T> = { value: undefined, next: undefined }

  constructor(entries: Iterable<readonly [prefix: string, value: T]>) {
    for (const [prefix, value] of entries) {
      let node = this.#root
      if (prefix !== '/')
        for (const segment of prefix.replace(/\/$/, '').slice(1).split('/')) {
          const children = (node.next ??= new Map<string, Node<T>>())
          const next = children.get(segment) ?? { value: undefined, next: undefined }
          children.set(segment, next)
          node = next
        }
      node.value ??= value
    }
  }

  /** The value of the longest prefix of `path`, which begins with a slash. */
  find(path: string): T | undefined {
    let node = this.#root
    let found = node.value
    for (let start = 1; node.next !== undefined;) {
      const slash = path.indexOf('/', start)
      const next: Node<T> | undefined = node.next.get(slash === -1 ? path.slice(start) : path.slice(start, slash))
      if (next === undefined) break
      node = next
      found = node.value ?? found
      if (slash === -1) break
      start = slash + 1
    }
    return found
  }
}
