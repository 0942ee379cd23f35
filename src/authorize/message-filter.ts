import type { Claims, ListField } from '../core/index.ts'
import { foldedNames, foldName, isInOtherCase, JsonError, parseJsonObject } from '../http/index.ts'
import { isObject } from '../mcp/index.ts'
import { JsonScanner } from './json-scanner.ts'
import { unclear } from './unclear.ts'

/** Characters of one item of a list, and of a value that decides. */
const MAX_ITEM = 1024 * 1024
const MAX_VALUE = 64 * 1024
/** Distinct field names of one object that are compared, and their characters. */
const MAX_NAMES = 1024
const MAX_NAMES_LENGTH = 64 * 1024
const ITEM_DEPTH = 64

/** The field of an item by which rules know it. */
const KEYS: Readonly<Record<ListField, string>> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  resourceTemplates: 'uriTemplate',
}
const ROOT_FIELDS = foldedNames(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const RESULT_FIELDS = foldedNames([...Object.keys(KEYS), 'cacheScope', 'ttlMs', 'task', 'taskId'])
const PARAMS_FIELDS = foldedNames(['uri'])

/** What decides on the parts of a message from a backend. */
export interface MessageRules {
  /** Whether an item of a list stays, by its name or URI. */
  keeps(list: ListField, key: string, item: Claims): boolean
  /** Whether this caller may know that a resource has changed. */
  keepsUpdate(uri: string): boolean
}

/** What a message was, when all of it has come. */
export interface FilteredMessage {
  readonly kind: 'response' | 'request' | 'dropped'
  /** As JSON; undefined where there is none. */
  readonly id: string | undefined
  /** The task that a response creates. */
  readonly taskId: string | undefined
}

interface Frame {
  /** Which part of a message it is; undefined where nothing in it matters. */
  readonly part: 'root' | 'result' | 'params' | undefined
  /** Its items are filtered. */
  readonly list: ListField | undefined
  /** Names that have come, folded; of parts only. */
  readonly names: Set<string> | undefined
  /** Characters of `names`. */
  namesLength: number
  field: string
  hasTtl: boolean
  hasScope: boolean
  kept: number
}

/** A value that is held back until it is whole. */
interface Held {
  readonly what: 'item' | 'scope' | 'id' | 'method' | 'version' | 'uri' | 'task' | 'taskId'
  readonly depth: number
  readonly most: number
  text: string
}

/**
 * Reads one JSON-RPC message as it arrives and gives it out without the items and notifications that its caller may not
 * see; everything else keeps its characters and order. Holds at most one item. Throws `backend_error` for what is no
 * single, unambiguous message.
 */
export class MessageFilter {
  readonly #rules: MessageRules
  readonly #scanner: JsonScanner
  readonly #stack: Frame[] = []
  #held: Held | undefined
  #out = ''
  #method: unknown
  #uri: string | undefined
  #id: string | undefined
  #taskId: string | undefined
  #isVersioned = false
  #hasResult = false
  #hasError = false

  constructor(rules: MessageRules) {
    this.#rules = rules
    this.#scanner = new JsonScanner({
      readsNames: () => this.#stack.at(-1)?.names !== undefined,
      text: (text, isSpace) => this.#emit(text, isSpace),
      comma: () => this.#comma(),
      valueBegins: (kind) => this.#valueBegins(kind),
      opened: (kind) => this.#opened(kind),
      closing: () => this.#closing(),
      closed: () => void this.#stack.pop(),
      name: (text) => this.#name(text),
      valueEnds: () => this.#valueEnds(),
    })
  }

  /** Something has come that is no space. */
  get hasBegun(): boolean {
    return this.#scanner.hasBegun
  }

  /** Characters that can go out, once the message is known not to be dropped. */
  get length(): number {
    return this.#out.length
  }

  /** Whether what comes decides no more on whether the message goes out: it is a response, or of a method without filter. */
  get isDecided(): boolean {
    return this.#hasResult || this.#hasError || (typeof this.#method === 'string' && this.#method !== UPDATED)
  }

  take(): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  /** A line of an event ends; in a string it could not. */
  breakLine(): void {
    if (this.#scanner.isInString) throw unclear('a line break in a string')
    this.push(' ')
  }

  push(text: string): void {
    this.#scanner.push(text)
  }

  /** What the message was. Throws `backend_error` where it is not whole. */
  end(): FilteredMessage {
    this.#scanner.end()
    if (!this.#isVersioned) throw unclear('not JSON-RPC 2.0')
    if (this.#method !== undefined) {
      if (this.#hasResult || this.#hasError) throw unclear('a request with a result')
      if (typeof this.#method !== 'string') throw unclear('a method that is no string')
      const isDropped = this.#method === UPDATED && (this.#uri === undefined || !this.#rules.keepsUpdate(this.#uri))
      if (isDropped) this.#out = ''
      return { kind: isDropped ? 'dropped' : 'request', id: this.#id, taskId: undefined }
    }
    if (this.#hasResult === this.#hasError) throw unclear('neither a request nor a response')
    return { kind: 'response', id: this.#id, taskId: this.#taskId }
  }

  /** Gives out, or keeps, what has been read; spaces between the items of a filtered list are left out. */
  #emit(text: string, isSpace = false): void {
    if (this.#held !== undefined) {
      this.#held.text += text
      if (this.#held.text.length > this.#held.most) throw unclear('an item or value that is too large')
      return
    }
    if (isSpace && this.#stack.at(-1)?.list !== undefined) return
    this.#out += text
  }

  #comma(): void {
    if (this.#held !== undefined || this.#stack.at(-1)?.list === undefined) this.#emit(',')
  }

  #closing(): void {
    const top = this.#stack.at(-1)
    if (top?.part === 'result' && top.hasTtl && !top.hasScope) this.#emit(',"cacheScope":"private"')
  }

  #opened(kind: 'object' | 'array'): void {
    const above = this.#stack.at(-1)
    const isHeld = this.#held !== undefined
    const part = isHeld || kind === 'array' ? undefined : partBelow(above)
    const list = !isHeld && kind === 'array' && above?.part === 'result' ? listCalled(above.field) : undefined
    this.#stack.push({
      part,
      list,
      names: part === undefined ? undefined : new Set(),
      namesLength: 0,
      field: '',
      hasTtl: false,
      hasScope: false,
      kept: 0,
    })
  }

  #name(text: string): void {
    const top = this.#stack.at(-1)
    if (top?.names === undefined) return
    const name = unquoted(text)
    const { names, part } = top
    if (names.size === names.add(foldName(name)).size) throw unclear('a field twice')
    top.namesLength += name.length
    if (names.size > MAX_NAMES || top.namesLength > MAX_NAMES_LENGTH) throw unclear('too many fields')
    const known = part === 'root' ? ROOT_FIELDS : part === 'result' ? RESULT_FIELDS : PARAMS_FIELDS
    if (isInOtherCase(known, name)) throw unclear('a field in another case')
    top.field = name
  }

  /** Decides whether a value is held back until it is whole. */
  #valueBegins(kind: 'object' | 'array' | 'string' | 'scalar'): void {
    if (this.#held !== undefined) return
    const top = this.#stack.at(-1)
    if (top === undefined) {
      if (kind !== 'object') throw unclear('not one JSON-RPC message')
      return
    }
    const hold = (what: Held['what'], most = MAX_VALUE): void => {
      this.#held = { what, depth: this.#stack.length, most, text: '' }
    }
    if (top.list !== undefined) return hold('item', MAX_ITEM)
    const { part, field } = top
    if (part === 'root') {
      if (field === 'id') hold('id')
      else if (field === 'method') hold('method')
      else if (field === 'jsonrpc') hold('version')
      else if (field === 'result') {
        this.#hasResult = true
        if (kind !== 'object') throw unclear('a result that is no object')
      } else if (field === 'error') this.#hasError = true
    } else if (part === 'params' && field === 'uri') hold('uri')
    else if (part === 'result') {
      if (listCalled(field) !== undefined && kind !== 'array') throw unclear('a list that is none')
      if (field === 'ttlMs') top.hasTtl = true
      if (field === 'cacheScope') {
        top.hasScope = true
        hold('scope')
      } else if (field === 'task') hold('task')
      else if (field === 'taskId') hold('taskId')
    }
  }

  #valueEnds(): void {
    const held = this.#held
    if (held !== undefined && held.depth === this.#stack.length) {
      this.#held = undefined
      this.#decide(held)
    }
  }

  #decide({ what, text }: Held): void {
    switch (what) {
      case 'item':
        return this.#item(text)
      case 'scope':
        this.#out += '"private"'
        return
      case 'id':
        this.#id = canonical(parsed(text))
        break
      case 'method':
        this.#method = parsed(text)
        break
      case 'version':
        this.#isVersioned = parsed(text) === '2.0'
        break
      case 'uri': {
        const uri = parsed(text)
        this.#uri = typeof uri === 'string' ? uri : undefined
        break
      }
      case 'task':
      case 'taskId': {
        const value = parsed(text)
        const id = isObject(value) ? value['taskId'] : value
        if (typeof id === 'string') this.#taskId ??= id
      }
    }
    this.#out += text
  }

  #item(text: string): void {
    const top = this.#stack.at(-1)
    const list = top?.list
    if (top === undefined || list === undefined) return
    const item = itemIn(text)
    const name = KEYS[list]
    if (Object.keys(item).some((field) => field !== name && foldName(field) === foldName(name)))
      throw unclear('a field in another case')
    const key = item[name]
    if (typeof key !== 'string' || !this.#rules.keeps(list, key, item)) return
    this.#out += top.kept === 0 ? text : `,${text}`
    top.kept += 1
  }
}

const UPDATED = 'notifications/resources/updated'
const partBelow = (above: Frame | undefined): Frame['part'] => {
  if (above === undefined) return 'root'
  if (above.part !== 'root') return undefined
  return above.field === 'result' || above.field === 'params' ? above.field : undefined
}

const listCalled = (field: string): ListField | undefined =>
  Object.hasOwn(KEYS, field) ? (field as ListField) : undefined

/** What tells ids apart: 1 and "1" are two. */
export const canonical = (id: unknown): string | undefined =>
  typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : undefined

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw unclear('not JSON')
  }
}

function unquoted(text: string): string {
  const name = parsed(text)
  return typeof name === 'string' ? name : ''
}

function itemIn(text: string): Claims {
  try {
    return parseJsonObject(text, { maxDepth: ITEM_DEPTH })
  } catch (error) {
    if (error instanceof JsonError) throw unclear(`an item: ${error.message}`)
    throw error
  }
}
