import { parentPort, workerData } from 'node:worker_threads'
import { type Document, parseDocument } from './document.ts'
import { SourceError, type SourceProblem } from './source-error.ts'

/** What the worker is given: bytes that are its own from then on. */
export interface ParseOrder {
  readonly bytes: Uint8Array
  /** About so many characters of JSON come with each answer; one entry may be longer. */
  readonly sliceLength: number
}

/** What it says first, and then for each time it is asked. */
export type ParseAnswer =
  | { readonly is: 'problem'; readonly problem: SourceProblem; readonly detail: string }
  | ({ readonly is: 'head' } & Omit<Document, 'items'>)
  /** JSON of an array with the next entries. */
  | { readonly is: 'entries'; readonly json: string }
  | { readonly is: 'end' }

/** Serves the entries of a document a slice at a time, as text: what is handed over is parsed where it is wanted. */
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
