const NEWLINE = 0x0a
const EMPTY = Buffer.alloc(0)
/** The byte order mark of UTF-8, which some clients write first. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** A line without its end, or one that was too long and was passed over. */
export type Line = { readonly kind: 'line'; readonly bytes: Buffer } | { readonly kind: 'too_long' }

/**
 * The lines of a stream (MCP, stdio transport: messages are delimited by newlines), each at most `maxBytes` long. A last
 * line without an end counts as well, and a byte order mark before the first is skipped. What it keeps of a line that is too long is nothing.
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
