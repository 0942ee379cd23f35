import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, type Scalar, type YAMLMap } from 'yaml'
import { otherReading } from './yaml-1-1.ts'
import { type Budget, Limit, YAML_LIMITS } from './yaml-limits.ts'

type Path = readonly PropertyKey[]

/** Receives the findings of a reader; offsets refer to the text. */
export interface Findings {
  problem(offset: number, message: string): void
  warning(offset: number, path: Path, message: string): void
}

/** One document as plain data with the locations of its parts. */
export class YamlReader {
  readonly #contents: Node
  readonly #budget: Budget
  readonly #findings: Findings
  readonly #anchors = new Map<string, Node>()
  readonly #targets = new WeakMap<Node, Node>()
  readonly #open = new Set<Node>()
  readonly #reported = new WeakSet<Node>()
  readonly #pairsOf = new WeakMap<Node, ReadonlyMap<string, Pair>>()

  constructor(contents: Node, budget: Budget, findings: Findings) {
    this.#contents = contents
    this.#budget = budget
    this.#findings = findings
  }

  /** The value of the document. Throws `Limit`. */
  read(): unknown {
    return this.#value(this.#contents, [])
  }

  #value(node: Node | null, path: Path): unknown {
    if (node === null) return null
    const offset = offsetOf(node)
    this.#budget.values -= 1
    if (this.#budget.values < 0)
      throw new Limit(offset, `too many values, expected at most ${YAML_LIMITS.values} with aliases expanded`)
    if (path.length > YAML_LIMITS.depth || this.#open.size > YAML_LIMITS.depth)
      throw new Limit(offset, `nested too deeply, expected at most ${YAML_LIMITS.depth} levels`)
    if (isAlias(node)) return this.#alias(node, node.source, path)
    this.#anchor(node)
    if (isScalar(node)) {
      this.#warnAbout(node, path)
      return node.value
    }
    this.#open.add(node)
    const value = isMap(node)
      ? this.#map(node.items, path)
      : isSeq(node)
        ? node.items.map((item, index) => this.#value(item as Node | null, [...path, index]))
        : null
    this.#open.delete(node)
    return value
  }

  #warnAbout(node: Scalar, path: Path): void {
    const message = otherReading(node)
    if (message === undefined || this.#reported.has(node)) return
    this.#reported.add(node)
    this.#findings.warning(offsetOf(node), path, message)
  }

  #anchor(node: Node & { anchor?: string | undefined }): void {
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
  }

  #alias(node: Node, name: string, path: Path): unknown {
    const target = this.#anchors.get(name)
    if (target === undefined || this.#open.has(target)) {
      this.#findings.problem(
        offsetOf(node),
        target === undefined
          ? 'an alias that has no anchor before it; a text that starts with "*" needs quotes'
          : 'an alias inside its own anchor',
      )
      return null
    }
    this.#targets.set(node, target)
    return this.#value(target, path)
  }

  #map(items: readonly Pair[], path: Path): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    const seen = new Set<string>()
    for (const pair of items) {
      const key = keyOf(pair)
      const offset = offsetOfKey(pair)
      if (key === undefined) this.#findings.problem(offset, 'a key that is not a string, expected a plain field name')
      else if (seen.has(key))
        this.#findings.problem(
          offset,
          isMerge(pair) ? 'duplicate key "<<", expected one with a list of aliases' : `duplicate key "${shorten(key)}"`,
        )
      else if (key === '__proto__') this.#findings.problem(offset, 'unknown field "__proto__"')
      else if (!isMerge(pair)) {
        if (isScalar(pair.key)) this.#warnAbout(pair.key, [...path, key])
        value[key] = this.#value(pair.value as Node | null, [...path, key])
      }
      if (key !== undefined) seen.add(key)
    }
    const at = items.findIndex(isMerge)
    const merge = items[at]
    if (merge !== undefined) this.#merge(value, merge, items.slice(0, at), path)
    return value
  }

  /** Adds the fields of `<<` that `value` does not define; the first of several objects wins (YAML 1.1, merge keys). */
  #merge(value: Record<string, unknown>, merge: Pair, before: readonly Pair[], path: Path): void {
    const offset = offsetOfKey(merge)
    const merged = this.#value(merge.value as Node | null, [...path, '<<'])
    for (const source of Array.isArray(merged) ? (merged as unknown[]) : [merged]) {
      if (typeof source !== 'object' || source === null || Array.isArray(source)) {
        this.#findings.problem(offset, 'expected an alias of an object after "<<", or a list of them')
        return
      }
      for (const [key, member] of Object.entries(source)) {
        if (!Object.hasOwn(value, key)) value[key] = member
        else if (before.some((pair) => keyOf(pair) === key))
          this.#findings.warning(
            offset,
            [...path, key],
            `kubectl takes "${shorten(key)}" from "<<", which follows it, and here it is what is written; put "<<" first`,
          )
      }
    }
  }

  /** Offset of the value at `path`, see `TextDocument.locate`. */
  offsetOf(path: Path, what: 'key' | 'value'): number {
    return this.#find(path, what).offset
  }

  /** The literal block scalar (`|`) at `path`: the offset of its header, and its text. */
  blockAt(path: Path): { readonly offset: number; readonly value: string } | undefined {
    const { node } = this.#find(path, 'value')
    if (node === null || !isScalar(node) || node.type !== 'BLOCK_LITERAL') return undefined
    return { offset: offsetOf(node), value: String(node.value) }
  }

  #find(path: Path, what: 'key' | 'value'): { readonly offset: number; readonly node: Node | null } {
    let node: Node | null = this.#contents
    let offset = offsetOf(node)
    for (const [index, step] of path.entries()) {
      node = this.#resolved(node)
      if (isMap(node)) {
        const pair = this.#pairs(node).get(String(step))
        if (pair === undefined) return { offset, node: null }
        offset = offsetOfKey(pair)
        node = pair.value as Node | null
      } else if (isSeq(node)) {
        const item = node.items[Number(step)] as Node | null | undefined
        if (item === undefined) return { offset, node: null }
        node = item
        offset = node?.range?.[0] ?? offset
      } else return { offset, node: null }
      const isLast = index === path.length - 1
      const isWord = isAlias(node) || (isScalar(node) && node.value !== null)
      if (isLast && what === 'value' && isWord) offset = node?.range?.[0] ?? offset
    }
    return { offset, node: this.#resolved(node) }
  }

  /** Pairs of a map by key, including merged ones, cached: a map may have as many problems as keys. */
  #pairs(node: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#pairsOf.get(node)
    if (known !== undefined) return known
    const pairs = new Map<string, Pair>()
    // Registered before the target is visited: an alias may lead back here.
    this.#pairsOf.set(node, pairs)
    for (const pair of node.items) {
      const key = keyOf(pair)
      if (key !== undefined && !pairs.has(key) && !isMerge(pair)) pairs.set(key, pair)
    }
    const merge = node.items.find(isMerge)
    const merged = this.#resolved((merge?.value ?? null) as Node | null)
    for (const source of isSeq(merged) ? merged.items : [merged]) {
      const map = this.#resolved(source as Node | null)
      if (!isMap(map)) continue
      for (const [key, pair] of this.#pairs(map)) if (!pairs.has(key)) pairs.set(key, pair)
    }
    return pairs
  }

  #resolved(node: Node | null): Node | null {
    return node !== null && isAlias(node) ? (this.#targets.get(node) ?? node) : node
  }
}

function keyOf(pair: Pair): string | undefined {
  const { key } = pair
  if (!isScalar(key)) return undefined
  return typeof key.value === 'string' || typeof key.value === 'number' || typeof key.value === 'boolean'
    ? String(key.value)
    : undefined
}

/** Only a plain `<<` is a merge key; a quoted one is an ordinary key. */
const isMerge = ({ key }: Pair): boolean =>
  isScalar(key) && key.value === '<<' && key.type === 'PLAIN' && key.tag === undefined

const offsetOf = (node: Node): number => node.range?.[0] ?? 0
const offsetOfKey = (pair: Pair): number => (pair.key as Node | null)?.range?.[0] ?? 0

/** A name from a file, shortened for a message. */
export const shorten = (text: string): string => (text.length <= 64 ? text : `${text.slice(0, 61)}...`)
