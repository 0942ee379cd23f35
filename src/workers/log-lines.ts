import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** What a worker may write without a newline; more than any line of ours. */
const LONGEST_LINE = 1024 * 1024

/** Hands on what `stream` carries in whole lines, so that those of several processes don't run into each other. */
export function passLines(stream: Readable, onLines: (lines: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const text = rest + decoder.write(chunk)
    const end = text.lastIndexOf('\n') + 1
    rest = text.slice(end)
    if (end > 0) onLines(text.slice(0, end))
    if (rest.length <= LONGEST_LINE) return
    onLines(`${rest}\n`)
    rest = ''
  })
  // The last words of a process that crashed end without one.
  stream.on('end', () => {
    if (rest !== '') onLines(`${rest}\n`)
  })
}
