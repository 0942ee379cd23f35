import type {
  Again,
  Armed,
  Attempt as Try,
  Credential,
  CredentialLookup,
  DropRule,
  EpochMs,
  Inbound,
  Known,
  Matched,
  MonotonicMs,
  RequestResult,
  RequestTrace,
  Sealed,
} from '../core/index.ts'
import { BodyCopy, type BodyBudget } from './body-copy.ts'
import type { Marks } from './record.ts'
import { SecretTexts, addSecretHeaders } from './secret-texts.ts'
import { flatHeaders } from './masked-heads.ts'

type ParsedHeaders = Parameters<RequestTrace['received']>[1]

/** A try of a request as it is noted: what it holds is what the stages handed over, secrets included. */
export interface NotedAttempt {
  readonly number: number
  readonly lookup: CredentialLookup
  readonly beganMs: number
  armedMs?: number
  sealedMs?: number
  sendingMs?: number
  receivedMs?: number
  armed?: Armed
  sealed?: Sealed
  status?: number
  /** Of the backend's answer, flat. */
  headers?: readonly string[]
  again?: Again
}

/** Receives the progress of a watched request. */
export interface Watcher {
  readonly keepsBodies: boolean
  readonly budget: BodyBudget
  /** Milliseconds that only go forward. */
  monotonicMs(): MonotonicMs
  /** Something that the list shows has changed. */
  changed(request: WatchedRequest): void
  /** More of the answer's body can be shown. */
  grew(request: WatchedRequest, text: string): void
  finished(request: WatchedRequest): void
}

/**
 * One request as it goes: notes times and keeps references, nothing more, until it is over or somebody asks. What it holds is
 * not masked; `recordOf` makes what may be kept, and `release` lets go of everything else.
 */
export class WatchedRequest implements RequestTrace {
  readonly id: string
  readonly arrivedAtMs: EpochMs
  readonly requestBody?: (chunk: Buffer) => void
  readonly marks: Marks = {}
  readonly attempts: NotedAttempt[] = []
  /** Names and rules in turn. */
  readonly drops: string[] = []
  inbound: Inbound | undefined
  matchedTo: Matched | undefined
  knownAs: Known | undefined
  /** The last head to the client, flat. */
  answer: { readonly status: number; readonly headers: readonly string[] } | undefined
  result: RequestResult | undefined
  requestCopy: BodyCopy | undefined
  /** Of a request that was refused. */
  refused: Buffer | undefined
  responseCopy: BodyCopy | undefined
  readonly #watcher: Watcher
  readonly #startMs: MonotonicMs
  #texts: SecretTexts | undefined

  constructor(inbound: Inbound, watcher: Watcher) {
    this.id = inbound.id
    this.arrivedAtMs = inbound.receivedAtMs
    this.inbound = inbound
    this.#watcher = watcher
    this.#startMs = watcher.monotonicMs()
    if (watcher.keepsBodies) this.requestBody = (chunk) => this.#copyRequest(chunk)
  }

  /** Milliseconds since the arrival. */
  get elapsedMs(): number {
    return this.#watcher.monotonicMs() - this.#startMs
  }

  dropped(name: string, rule: DropRule): void {
    this.drops.push(name, rule)
  }

  matched(matched: Matched): void {
    this.matchedTo = matched
    this.marks.matched = this.elapsedMs
  }

  known(known: Known): void {
    this.knownAs = known
    this.marks.known = this.elapsedMs
  }

  attempt({ number }: Try, lookup: CredentialLookup): void {
    this.attempts.push({ number, lookup, beganMs: this.elapsedMs })
    if (number === 1) this.#watcher.changed(this)
  }

  armed(armed: Armed): void {
    const current = this.attempts.at(-1)
    if (current === undefined) return
    current.armed = armed
    current.armedMs = this.elapsedMs
  }

  sealed(sealed: Sealed): void {
    const current = this.attempts.at(-1)
    if (current === undefined) return
    current.sealed = sealed
    current.sealedMs = this.elapsedMs
  }

  sending(): void {
    const current = this.attempts.at(-1)
    if (current !== undefined) current.sendingMs = this.elapsedMs
  }

  refusedBody(body: Buffer): void {
    this.refused = body
  }

  received(status: number, headers: ParsedHeaders): void {
    const current = this.attempts.at(-1)
    if (current === undefined) return
    current.status = status
    current.headers = flatHeaders(headers)
    current.receivedMs = this.elapsedMs
  }

  again(again: Again): void {
    const current = this.attempts.at(-1)
    if (current !== undefined) current.again = again
  }

  responded(status: number, headers: readonly string[]): void {
    this.answer = { status, headers }
    this.marks.responded = this.elapsedMs
    this.#watcher.changed(this)
    if (!this.#watcher.keepsBodies) return
    const copy = new BodyCopy(bodyHead(headers), this.texts(), this.#watcher.budget)
    copy.onGrowth = (text) => this.#watcher.grew(this, text)
    this.responseCopy = copy
  }

  body(chunk: Buffer): void {
    this.marks.firstByte ??= this.elapsedMs
    this.responseCopy?.add(chunk)
  }

  finished(result: RequestResult): void {
    this.result = result
    this.marks.finished = this.elapsedMs
    this.#watcher.finished(this)
  }

  /** The secrets of this request known so far. */
  texts(): SecretTexts {
    const texts = (this.#texts ??= new SecretTexts())
    const owned = this.matchedTo?.route.ownedHeaders ?? []
    if (this.inbound !== undefined) {
      const { rawHeaders, url } = this.inbound.request
      addSecretHeaders(texts, rawHeaders, owned)
      texts.addTarget(url)
    }
    for (const { armed, sealed, headers } of this.attempts) {
      if (armed !== undefined) texts.addCredential(armed.credential)
      for (const credential of armed?.forwarded ?? []) texts.addCredential(credential)
      // A target of the configuration may hold a key.
      if (sealed !== undefined) texts.addTarget(sealed.path)
      if (sealed !== undefined && armed?.credential.kind === 'aws') texts.addSignature(sealed.headers)
      if (headers !== undefined) addSecretHeaders(texts, headers, owned)
    }
    return texts
  }

  /** The credential of the last try. */
  get credential(): Credential | undefined {
    return this.attempts.at(-1)?.armed?.credential
  }

  /** Keeps nothing that is secret: to be called when the record is made. */
  release(): void {
    this.inbound = this.matchedTo = this.knownAs = this.answer = this.result = undefined
    this.requestCopy = this.responseCopy = this.#texts = this.refused = undefined
    this.attempts.length = this.drops.length = 0
  }

  #copyRequest(chunk: Buffer): void {
    if (this.requestCopy === undefined) {
      const sealed = this.attempts.at(-1)?.sealed
      this.requestCopy = new BodyCopy(bodyHead(sealed?.headers ?? []), this.texts(), this.#watcher.budget)
    }
    this.requestCopy.add(chunk)
  }
}

/** Inputs for the display of a body. */
export function bodyHead(headers: readonly string[]): {
  contentType: string | undefined
  encoding: string | undefined
} {
  let contentType: string | undefined
  let encoding: string | undefined
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]?.toLowerCase()
    if (name === 'content-type') contentType = headers[index + 1]
    else if (name === 'content-encoding') encoding = headers[index + 1]
  }
  return { contentType, encoding }
}
