import { type FilteredMessage, MessageFilter, type MessageRules } from './message-filter.ts'
import { unclear } from './unclear.ts'

/** Characters of a line that is no data, and of data that is no message. */
const MAX_LINE = 64 * 1024
/** Characters of a message that are held until it is known whether it goes out. */
const MAX_HELD = 512 * 1024
const FIELDS: ReadonlySet<string> = new Set(['data', 'event', 'id', 'retry'])
const LONGEST_FIELD = 5

/**
 * Filters an event stream message by message (HTML standard §9.2.6), whichever way its lines are split. Comments lose
 * their text. Throws `backend_error` for data that are no single message.
 */
export class EventFilter {
  readonly #rules: MessageRules
  readonly #onMessage: (message: FilteredMessage) => void
  #out = ''
  #isStart = true
  #skipsLineFeed = false
  /** The field that a line begins with, until its colon has come; afterwards its name. */
  #field = ''
  #hasColon = false
  #skipsSpace = false
  #value = ''
  /** Lines other than data of the event. */
  #lines = ''
  #type = ''
  #message: MessageFilter | undefined
  /** Data of an event that is no message. */
  #other: string | undefined
  #isOut = false

  constructor(rules: MessageRules, onMessage: (message: FilteredMessage) => void) {
    this.#rules = rules
    this.#onMessage = onMessage
  }

  take(): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  push(text: string): void {
    if (text === '') return
    if (this.#isStart && text.startsWith('\uFEFF')) throw unclear('a byte order mark')
    this.#isStart = false
    let at = 0
    while (at < text.length) {
      if (this.#skipsLineFeed) {
        this.#skipsLineFeed = false
        if (text[at] === '\n') {
          at += 1
          continue
        }
      }
      const end = lineEnd(text, at)
      this.#part(text.slice(at, end === -1 ? text.length : end))
      if (end === -1) return
      this.#skipsLineFeed = text[end] === '\r'
      this.#lineEnds()
      at = end + 1
    }
  }

  #part(text: string): void {
    let rest = text
    if (!this.#hasColon) {
      const colon = rest.indexOf(':')
      this.#field += colon === -1 ? rest : rest.slice(0, colon)
      if (this.#field.length > LONGEST_FIELD) this.#field = 'ignored'
      if (colon === -1) return
      this.#hasColon = true
      this.#skipsSpace = true
      rest = rest.slice(colon + 1)
      if (this.#field === 'data') this.#dataBegins()
    }
    if (rest === '') return
    if (this.#skipsSpace) {
      this.#skipsSpace = false
      if (rest.startsWith(' ')) rest = rest.slice(1)
    }
    if (this.#field === 'data') this.#data(rest)
    else if (FIELDS.has(this.#field)) {
      this.#value += rest
      if (this.#value.length > MAX_LINE) throw unclear('a line that is too long')
    }
  }

  #lineEnds(): void {
    const field = this.#field
    const value = this.#value
    const hasColon = this.#hasColon
    this.#field = ''
    this.#value = ''
    this.#hasColon = false
    this.#skipsSpace = false
    if (field === '' && !hasColon) return this.#dispatch()
    if (field === '') {
      // A sign of life; within an event it would be out of place.
      if (this.#message === undefined && this.#other === undefined) this.#out += ':\n'
      return
    }
    if (field === 'data' && !hasColon) this.#dataBegins()
    if (field === 'event') {
      const isMessage = value === '' || value === 'message'
      if ((this.#message?.hasBegun === true && !isMessage) || (this.#other !== undefined && isMessage))
        throw unclear('a type after its data')
      this.#type = value
    }
    if (field === 'event' || field === 'id' || field === 'retry') this.#lines += `${field}: ${value}\n`
  }

  #dataBegins(): void {
    if (this.#type !== '' && this.#type !== 'message') {
      this.#other = this.#other === undefined ? '' : `${this.#other}\ndata: `
      return
    }
    if (this.#message === undefined) this.#message = new MessageFilter(this.#rules)
    else this.#message.breakLine()
  }

  #data(text: string): void {
    if (this.#other !== undefined) {
      this.#other += text
      if (this.#other.length > MAX_LINE) throw unclear('an event of another type that is too large')
      return
    }
    const message = this.#message
    if (message === undefined) return
    message.push(text)
    if (message.length < MAX_HELD && !this.#isOut) return
    if (!message.isDecided) throw unclear('a message that is too large')
    this.#flush(message)
  }

  #flush(message: MessageFilter): void {
    if (!this.#isOut) {
      this.#out += `${this.#lines}data: `
      this.#lines = ''
    }
    this.#isOut = true
    this.#out += message.take()
  }

  #dispatch(): void {
    const message = this.#message
    if (message !== undefined && message.hasBegun) {
      const ended = message.end()
      if (ended.kind !== 'dropped') {
        this.#flush(message)
        this.#out += `\n${this.#lines}\n`
      }
      this.#onMessage(ended)
    } else if (message !== undefined || this.#other !== undefined)
      this.#out += `${this.#lines}data: ${this.#other ?? ''}\n\n`
    else if (this.#lines !== '') this.#out += `${this.#lines}\n`
    this.#message = undefined
    this.#other = undefined
    this.#isOut = false
    this.#lines = ''
    this.#type = ''
  }
}

function lineEnd(text: string, from: number): number {
  const lf = text.indexOf('\n', from)
  const cr = text.indexOf('\r', from)
  if (lf === -1 || cr === -1) return Math.max(lf, cr)
  return Math.min(lf, cr)
}
