import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { programModule } from '../core/index.ts'
import { type Document, parseDocument } from './document.ts'
import type { ParseAnswer, ParseOrder } from './parse-worker.ts'
import { SourceError } from './source-error.ts'

/** What is parsed at once: some milliseconds. */
const SMALL_BYTES = 512 * 1024
const SLICE_LENGTH = 256 * 1024

const WORKER = programModule('registry/parse-worker')

/**
 * The same as `parseDocument`, without holding up other requests for longer than some milliseconds: a large document is
 * parsed by a thread of its own. `bytes` must have a buffer of their own, and are gone afterwards. Rejects with `SourceError`.
 */
export async function readDocument(bytes: Uint8Array): Promise<Document> {
  if (bytes.length <= SMALL_BYTES) return parseDocument(bytes)
  const order: ParseOrder = { bytes, sliceLength: SLICE_LENGTH }
  const worker = new Worker(WORKER, { workerData: order, transferList: [bytes.buffer as ArrayBuffer] })
  try {
    const head = await answerOf(worker)
    if (head.is !== 'head') throw new SourceError('failed', 'the data could not be read')
    const items: unknown[] = []
    for (;;) {
      worker.postMessage('next', [])
      const answer = await answerOf(worker)
      if (answer.is !== 'entries') break
      for (const item of JSON.parse(answer.json) as readonly unknown[]) items.push(item)
    }
    return { items, nextCursor: head.nextCursor, updatedMs: head.updatedMs }
  } finally {
    await worker.terminate()
  }
}

async function answerOf(worker: Worker): Promise<ParseAnswer> {
  // Rejects with what ends the worker: it may not have had the memory.
  const [answer] = (await once(worker, 'message')) as [ParseAnswer]
  if (answer.is === 'problem') throw new SourceError(answer.problem, answer.detail)
  return answer
}
