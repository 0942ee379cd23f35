import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { startThread } from '../core/index.ts'
import { type Document, parseDocument } from './document.ts'
import type { ParseAnswer, ParseOrder } from './parse-worker.ts'
import { SourceError } from './source-error.ts'

/** Maximum size for parsing at once, some milliseconds. */
const SMALL_BYTES = 512 * 1024
const SLICE_LENGTH = 256 * 1024

/**
 * Like `parseDocument`, without blocking for more than some milliseconds: a thread parses large documents. `bytes`
 * must own its buffer, which is transferred. Rejects with `SourceError`.
 */
export async function readDocument(bytes: Uint8Array): Promise<Document> {
  if (bytes.length <= SMALL_BYTES) return parseDocument(bytes)
  const order: ParseOrder = { bytes, sliceLength: SLICE_LENGTH }
  const worker = startThread('registry/parse-worker', {
    workerData: order,
    transferList: [bytes.buffer as ArrayBuffer],
  })
  try {
    const head = await answerOf(worker)
    if (head.is !== 'head') throw new SourceError('failed', 'the data are unreadable')
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
  // Rejects with the error that stops the worker, such as a lack of memory.
  const [answer] = (await once(worker, 'message')) as [ParseAnswer]
  if (answer.is === 'problem') throw new SourceError(answer.problem, answer.detail)
  return answer
}
