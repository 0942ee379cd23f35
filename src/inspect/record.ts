import type { Again, ConnectionNeed, CredentialLookup, EpochMs, Explanation, RuleDecision } from '../core/index.ts'
import type { ShownBody } from './body-copy.ts'

/** Summary of a request for the list, without secrets. */
export interface Summary {
  readonly id: string
  readonly atMs: EpochMs
  /** True while its response is in progress. */
  readonly isOpen: boolean
  /** Empty when none was matched. */
  readonly route: string
  readonly type: string
  readonly method: string
  /** Path and query, masked. */
  readonly target: string
  /** Path of an endpoint of the proxy itself. */
  readonly endpoint?: string | undefined
  /** Of JSON-RPC: the method, and the tool, prompt or resource that it is about; masked. */
  readonly rpcMethod?: string | undefined
  readonly rpcName?: string | undefined
  /** 16 hex digits; undefined without an authenticated caller. */
  readonly caller?: string | undefined
  /** Only where claims are shown. */
  readonly subject?: string | undefined
  /** 0 while there is none. */
  readonly status: number
  readonly reason: string
  readonly attempts: number
  readonly durationMs: number
}

/** When something had been reached, in milliseconds since the arrival; undefined for what was not. */
export interface Marks {
  matched?: number
  known?: number
  firstByte?: number
  responded?: number
  finished?: number
}

/** One attempt of a request. */
export interface Attempt {
  readonly number: number
  readonly lookup: CredentialLookup
  readonly beganMs: number
  readonly armedMs: number | undefined
  readonly sealedMs: number | undefined
  readonly sendingMs: number | undefined
  readonly receivedMs: number | undefined
  readonly credential: 'none' | 'header' | 'aws' | undefined
  readonly sent:
    | {
        readonly method: string
        readonly target: string
        readonly head: string
        readonly signing: { readonly canonicalRequest: string; readonly stringToSign: string } | undefined
      }
    | undefined
  readonly received: { readonly status: number; readonly head: string } | undefined
  readonly again: { readonly reason: Again['reason']; readonly status: number | undefined } | undefined
}

/** The caller of the request. */
export interface CallerSeen {
  readonly kind: 'anonymous' | 'authenticated'
  readonly provider?: string
  readonly issuer?: string
  readonly format?: 'jwt' | 'opaque'
  readonly expiresAtMs?: EpochMs | undefined
  readonly hash?: string | undefined
  readonly subject?: string
  readonly claims?: object
}

/** A request as it is kept: masked, complete in itself. Heads are as `pairsOf` reads them. */
export interface RequestRecord {
  readonly summary: Summary
  readonly httpVersion: string
  readonly peer: string
  readonly received: string
  /** Names of headers that did not go on, each followed by its `DropRule`. */
  readonly dropped: readonly string[]
  readonly caller: CallerSeen | undefined
  readonly owned: readonly string[]
  readonly targetOrigin: string | undefined
  readonly attempts: readonly Attempt[]
  /** The role decision. */
  readonly decision: object | undefined
  /** The decision of the route's rules; undefined without rules. */
  readonly rules: RuleDecision | undefined
  readonly responded: { readonly status: number; readonly head: string } | undefined
  readonly marks: Readonly<Marks>
  /** Internal details that the client did not receive, as a sentence. */
  readonly detail: string | undefined
  /** Cause and remedy of a failure; undefined without a failure or explanation. */
  readonly why: Explanation | undefined
  /** The account that the caller was asked to connect. */
  readonly connection: Pick<ConnectionNeed, 'provider' | 'problem'> | undefined
  readonly requestBody: ShownBody | undefined
  readonly responseBody: ShownBody | undefined
}

const PER_RECORD = 1500
const PER_ATTEMPT = 400
const PER_TEXT = 24
const PER_STEP = 120

/** About how many bytes of memory a record takes. */
export function sizeOf(record: RequestRecord): number {
  const { summary, received, attempts, responded, caller, decision, rules } = record
  let bytes = PER_RECORD + received.length + (responded?.head.length ?? 0) + summary.target.length
  for (const { sent, received: answer } of attempts) {
    bytes += PER_ATTEMPT + (sent?.head.length ?? 0) + (answer?.head.length ?? 0)
    if (sent?.signing !== undefined) bytes += sent.signing.canonicalRequest.length + sent.signing.stringToSign.length
  }
  if (caller?.claims !== undefined) bytes += JSON.stringify(caller.claims).length
  // Kept with the caller, and by all requests of it.
  if (decision !== undefined) bytes += PER_RECORD
  bytes += (rules?.steps.length ?? 0) * PER_STEP
  return bytes + sizeOfBody(record.requestBody) + sizeOfBody(record.responseBody)
}

const sizeOfBody = (body: ShownBody | undefined): number => (body === undefined ? 0 : body.text.length + PER_TEXT)
