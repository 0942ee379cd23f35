import { parentPort, workerData } from 'node:worker_threads'
import { type Document, parseDocument } from './document.ts'
import { SourceError, type SourceProblem } from './source-error.ts'

/** Input of the worker: bytes that it owns. */
export interface ParseOrder {
  readonly bytes: Uint8Array
  /** Approximate characters of JSON per message; one entry may be longer. */
  readonly sliceLength: number
}

/** First message of the worker, then one per request. */
export type ParseAnswer =
  | { readonly is: 'problem'; readonly problem: SourceProblem; readonly detail: string }
  | ({ readonly is: 'head' } & Omit<Document, 'items'>)
  /** A JSON array of the next entries. */
  | { readonly is: 'entries'; readonly json: string }
  | { readonly is: 'end' }

/** Sends the entries of a document in slices as text, which the receiver parses. */
function serve(port: NonNullable<typeof parentPort>, { bytes, sliceLength }: ParseOrder): void {
  const say = (answer: ParseAnswer): void => port.postMessage(answer)
  let found: Document
  try {
    found = parseDocument(bytes)
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    say({ is: 'problem', problem: error.problem, detail: error.detail })
    return
  }
  const { items, ...head } = found
  let next = 0
  port.on('message', () => {
    const texts: string[] = []
    for (let length = 0; next < items.length && length < sliceLength; next++) {
      const text = JSON.stringify(items[next])
      texts.push(text)
      length += text.length
    }
    say(texts.length === 0 ? { is: 'end' } : { is: 'entries', json: `[${texts.join(',')}]` })
  })
  say({ is: 'head', ...head })
}

if (parentPort !== null) serve(parentPort, workerData as ParseOrder)
