const NEWLINE = 0x0a
const EMPTY = Buffer.alloc(0)
/** The UTF-8 byte order mark, which some clients send first. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** A line without its newline, or a skipped line above the limit. */
export type Line = { readonly kind: 'line'; readonly bytes: Buffer } | { readonly kind: 'too_long' }

/**
 * Yields the lines of a stream (MCP, stdio transport), each of at most `maxBytes`. Includes a last line without
 * newline, skips a leading byte order mark, and buffers nothing of a line that is too long.
 */
export async function* readLines(input: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let length = 0
  const take = (part: Buffer): void => {
    length += part.length
    if (length > maxBytes) parts = []
    else parts.push(part)
  }
  let isFirst = true
  const joined = (): Buffer => {
    const bytes = parts[1] === undefined ? (parts[0] ?? EMPTY) : Buffer.concat(parts)
    return isFirst && bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes
  }
  const line = (): Line => {
    const found: Line = length > maxBytes ? { kind: 'too_long' } : { kind: 'line', bytes: joined() }
    isFirst = false
    parts = []
    length = 0
    return found
  }
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end))
      yield line()
      start = end + 1
    }
    if (start < chunk.length) take(chunk.subarray(start))
  }
  if (length > 0) yield line()
}
