import type { ShownBody } from './body-copy.ts'
import { type RequestRecord, sizeOf } from './record.ts'

/** The newest records, bounded in number and bytes. */
export interface Ring {
  push(record: RequestRecord): void
  find(id: string): RequestRecord | undefined
  /** Oldest first, without the texts of bodies. */
  all(): readonly RequestRecord[]
  /** Ids of those whose bodies contain `text`, without regard to case; oldest first. */
  search(text: string): readonly string[]
  clear(): void
  readonly bytes: number
  /** Records evicted since the last clearing. */
  readonly dropped: number
}

/** Location of a body in the byte store; a text that reaches the end continues at the start. */
interface Span {
  readonly start: number
  readonly end: number
}

interface Kept {
  /** Bodies have no text here. */
  readonly record: RequestRecord
  readonly request: Span
  readonly response: Span
  readonly bytes: number
}

const NOTHING: Span = { start: 0, end: 0 }

/**
 * A ring for at most `maxRecords` records of together about `maxBytes`; the oldest go first. Texts of bodies are kept as UTF-8
 * in one buffer that is written around: as strings they would be garbage in the old space of the heap, which grows to several
 * times what is kept before it is collected.
 */
export function createRing({
  maxRecords,
  maxBytes,
  onDropped,
}: {
  readonly maxRecords: number
  readonly maxBytes: number
  /** Called with each evicted record. */
  readonly onDropped?: (id: string) => void
}): Ring {
  // Oldest first; those before `first` were dropped. Searched on request only.
  let kept: (Kept | undefined)[] = []
  let first = 0
  let bytes = 0
  let dropped = 0
  let store: Buffer | undefined
  /** Where the next text begins in the store. */
  let next = 0

  const dropOldest = (): void => {
    const oldest = kept[first]
    bytes -= oldest?.bytes ?? 0
    if (oldest !== undefined) onDropped?.(oldest.record.summary.id)
    kept[first] = undefined
    first++
    dropped++
    if (first < maxRecords) return
    kept = kept.slice(first)
    first = 0
  }
  /** Whether one more record of so many bytes is too much beside those that are kept. */
  const isTooMuch = (more: number): boolean => {
    const count = kept.length - first
    return count > 0 && (count >= maxRecords || bytes + more > maxBytes)
  }
  const write = (text: string, length: number): Span => {
    if (length === 0) return NOTHING
    store ??= Buffer.allocUnsafe(maxBytes)
    const span = { start: next, end: next + length }
    if (span.end <= maxBytes) store.write(text, next, length)
    else {
      const encoded = Buffer.from(text)
      encoded.copy(store, next, 0, maxBytes - next)
      encoded.copy(store, 0, maxBytes - next)
    }
    next = span.end % maxBytes
    return span
  }
  const read = ({ start, end }: Span): string => {
    if (store === undefined) return ''
    if (end <= maxBytes) return store.toString('utf8', start, end)
    return Buffer.concat([store.subarray(start), store.subarray(0, end - maxBytes)]).toString('utf8')
  }
  const whole = ({ record, request, response }: Kept): RequestRecord => ({
    ...record,
    requestBody: record.requestBody && { ...record.requestBody, text: read(request) },
    responseBody: record.responseBody && { ...record.responseBody, text: read(response) },
  })
  const all = (): Kept[] => kept.filter((one) => one !== undefined)
  const clear = (): void => {
    kept = []
    first = 0
    bytes = 0
    dropped = 0
    next = 0
    store = undefined
  }
  return {
    push(record) {
      const { requestBody, responseBody } = record
      const bare = { ...record, requestBody: withoutText(requestBody), responseBody: withoutText(responseBody) }
      const ofRequest = Buffer.byteLength(requestBody?.text ?? '')
      const ofResponse = Buffer.byteLength(responseBody?.text ?? '')
      const own = sizeOf(bare) + ofRequest + ofResponse
      while (isTooMuch(own)) dropOldest()
      if (own > maxBytes) {
        dropped++
        return onDropped?.(record.summary.id)
      }
      const request = write(requestBody?.text ?? '', ofRequest)
      const response = write(responseBody?.text ?? '', ofResponse)
      kept.push({ record: bare, request, response, bytes: own })
      bytes += own
    },
    find(id) {
      const found = all().find(({ record }) => record.summary.id === id)
      return found && whole(found)
    },
    all: () => all().map(({ record }) => record),
    search(text) {
      const wanted = text.toLowerCase()
      const has = ({ request, response }: Kept): boolean =>
        [request, response].some((span) => read(span).toLowerCase().includes(wanted))
      return all()
        .filter(has)
        .map(({ record }) => record.summary.id)
    },
    clear,
    get bytes() {
      return bytes
    },
    get dropped() {
      return dropped
    },
  }
}

const withoutText = (body: ShownBody | undefined): ShownBody | undefined => body && { ...body, text: '' }
