import { maskBody } from '../core/index.ts'
import { StringDecoder } from 'node:string_decoder'
import { brotliDecompressSync, constants, gunzipSync, inflateSync } from 'node:zlib'
import type { SecretTexts } from './secret-texts.ts'

/** Maximum recorded bytes of a body. */
export const BODY_BYTES = 64 * 1024

/** Memory budget for bodies of requests in progress; bodies beyond it are omitted. */
export interface BodyBudget {
  take(bytes: number): boolean
  release(bytes: number): void
}

/** A piece of a secret in its longest spelling, in characters. */
const LONGEST_PIECE = 96

type Inflate = (bytes: Buffer) => Buffer

/** A body for display. */
export interface ShownBody {
  /** Masked; the part that was received and stored. */
  readonly text: string
  /** All forwarded bytes; `text` shows the first. */
  readonly bytes: number
  /** Why `text` is not the whole body. */
  readonly cut?: 'longer' | 'no_room' | 'binary' | 'unknown_encoding' | undefined
}

const TEXT_TYPE =
  /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript|x-ndjson|x-www-form-urlencoded|graphql))/i

/**
 * The first 64 KiB of one body, masked. Raw bytes are kept until they are masked: event streams line by line, other bodies
 * at their end, because a secret may be split between chunks.
 */
export class BodyCopy {
  readonly #texts: SecretTexts
  readonly #budget: BodyBudget
  readonly #isStream: boolean
  readonly #isText: boolean
  readonly #decoder = new StringDecoder('utf8')
  readonly #inflate: Inflate
  #bytes = 0
  #taken = 0
  /** Compressed bytes, until the end of the body. */
  readonly #pieces: Buffer[] = []
  #raw = ''
  #shown = ''
  #cut: ShownBody['cut']
  onGrowth: ((text: string) => void) | undefined = undefined

  constructor(
    head: { readonly contentType: string | undefined; readonly encoding: string | undefined },
    texts: SecretTexts,
    budget: BodyBudget,
  ) {
    this.#texts = texts
    this.#budget = budget
    const { contentType, encoding } = head
    this.#isStream = contentType !== undefined && /^\s*text\/event-stream/i.test(contentType)
    this.#isText = contentType === undefined || TEXT_TYPE.test(contentType)
    this.#inflate = INFLATE[encoding?.trim().toLowerCase() ?? ''] ?? unknown
    if (this.#inflate === unknown) this.#cut = 'unknown_encoding'
    else if (!this.#isText) this.#cut = 'binary'
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#cut === undefined) this.#keep(chunk)
  }

  /** The body so far: complete lines of a running stream; empty for other bodies until they end. */
  shown(): ShownBody {
    return { text: this.#shown, bytes: this.#bytes, cut: this.#cut }
  }

  /** The body is complete: masks the rest and releases the raw text. */
  end(): ShownBody {
    if (this.#pieces.length > 0) this.#raw = this.#inflated().slice(0, BODY_BYTES + this.#held)
    this.#raw += this.#decoder.end()
    // The truncated part may have continued a secret.
    if (this.#isStream && this.#cut !== undefined) this.#raw = ''
    this.#show(this.#raw.length, this.#cut === undefined ? 0 : this.#held)
    this.#budget.release(this.#taken)
    this.#taken = 0
    return this.shown()
  }

  /** Text required after the shown part, so that a secret that begins within it can be detected. */
  get #held(): number {
    const { longest } = this.#texts
    return longest === 0 ? 0 : Math.max(longest, LONGEST_PIECE)
  }

  #keep(chunk: Buffer): void {
    // A secret that begins in the shown part is found only if it is complete.
    const limit = BODY_BYTES + (this.#isStream ? 0 : this.#held)
    const left = limit - this.#taken
    const piece = chunk.length > left ? chunk.subarray(0, left) : chunk
    if (!this.#budget.take(piece.length)) {
      this.#cut = 'no_room'
      return
    }
    this.#taken += piece.length
    if (piece.length < chunk.length) this.#cut = 'longer'
    if (this.#inflate !== asItIs) {
      // A copy, because a small slice keeps its large buffer in memory.
      this.#pieces.push(Buffer.from(piece))
      return
    }
    this.#raw += this.#decoder.write(piece)
    if (this.#isStream) this.#show(this.#raw.lastIndexOf('\n') + 1)
  }

  #inflated(): string {
    try {
      return this.#inflate(Buffer.concat(this.#pieces.splice(0))).toString('utf8')
    } catch {
      this.#cut = 'unknown_encoding'
      return ''
    }
  }

  /** Masks the first `length` raw characters and shows the result, except for its last `held` characters. */
  #show(length: number, held = 0): void {
    if (length === 0) return
    let text = maskBody(this.#texts.maskIn(this.#raw.slice(0, length)))
    if (held > 0) text = text.slice(0, Math.max(0, text.length - held))
    this.#raw = this.#raw.slice(length)
    const left = BODY_BYTES - this.#shown.length
    if (text.length > left) {
      text = text.slice(0, left)
      this.#cut ??= 'longer'
    }
    this.#shown += text
    if (text !== '') this.onGrowth?.(text)
  }
}

const asItIs: Inflate = (bytes) => bytes
const unknown: Inflate = (bytes) => bytes
/** A body may be truncated; its decompressed size is bounded. */
const BOUNDS = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 32 * BODY_BYTES }
const BROTLI_BOUNDS = { finishFlush: constants.BROTLI_OPERATION_FLUSH, maxOutputLength: 32 * BODY_BYTES }

const INFLATE: Readonly<Record<string, Inflate>> = {
  '': asItIs,
  identity: asItIs,
  gzip: (bytes) => gunzipSync(bytes, BOUNDS),
  'x-gzip': (bytes) => gunzipSync(bytes, BOUNDS),
  deflate: (bytes) => inflateSync(bytes, BOUNDS),
  br: (bytes) => brotliDecompressSync(bytes, BROTLI_BOUNDS),
}
