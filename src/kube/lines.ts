import { KubeError } from './kube-error.ts'

/** An etcd object is at most 1.5 MiB, so a longer event is invalid. */
const MAX_LINE_BYTES = 16 * 1024 * 1024

/**
 * Yields complete lines of a response; skips an incomplete last one (the connection was aborted). Throws `KubeError`
 * for a line above 16 MiB.
 */
export async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      parts.push(chunk.subarray(start, end))
      const line = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
      parts = []
      length = 0
      start = end + 1
      if (line.length > 0) yield line
    }
    if (start === chunk.length) continue
    parts.push(chunk.subarray(start))
    length += chunk.length - start
    if (length > MAX_LINE_BYTES) throw new KubeError(0, 'malformed')
  }
}
