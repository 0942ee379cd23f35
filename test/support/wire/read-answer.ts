import type { AnswerHead } from '../../../src/wire/answer-head.ts'
import { AnswerReader } from '../../../src/wire/answer-reader.ts'
import type { Framing } from '../../../src/wire/framing.ts'
import { WireError } from '../../../src/wire/wire-error.ts'

/** The parsed result of a response's bytes. */
export type ReadAnswer =
  | { readonly kind: 'refused'; readonly code: string }
  /** More would have to come. */
  | { readonly kind: 'cut'; readonly head: AnswerHead | undefined }
  | {
      readonly kind: 'whole'
      readonly head: AnswerHead
      readonly keepMs: number | undefined
      readonly interim: readonly number[]
      readonly body: Buffer
      /** Bytes that follow the answer. */
      readonly rest: number
    }

/** Reads an answer in these pieces; the peer ends the connection behind the last. */
export function readAnswer(pieces: readonly Buffer[], isHead = false): ReadAnswer {
  const interim: number[] = []
  const body: Buffer[] = []
  let head: AnswerHead | undefined
  let framing: Framing | undefined
  let isOver = false
  const reader = new AnswerReader({
    onHead(read, framed) {
      if (read.status < 200) interim.push(read.status)
      else [head, framing] = [read, framed]
      return read.status !== 101
    },
    onBody: (data) => body.push(data) > 0,
    onEnd: () => void (isOver = true),
  })
  reader.expect(isHead)
  let rest = 0
  try {
    for (const piece of pieces) rest += reader.read(piece).length
    if (!isOver) reader.end()
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return { kind: 'refused', code: error.code }
  }
  if (interim.includes(101)) return { kind: 'refused', code: 'switched' }
  if (!isOver || head === undefined) return { kind: 'cut', head }
  return { kind: 'whole', head, keepMs: framing?.keepMs, interim, body: Buffer.concat(body), rest }
}
