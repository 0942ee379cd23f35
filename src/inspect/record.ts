import type { Again, CredentialLookup, DropRule } from '../core/index.ts'
import type { ShownBody } from './body-copy.ts'

/** What a request is, for the list. Nothing in it is secret. */
export interface Summary {
  readonly id: string
  readonly atMs: number
  /** True while its answer is under way. */
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
  /** 16 hex digits; undefined for nobody in particular. */
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

/** One try of a request. */
export interface Attempt {
  readonly number: number
  readonly lookup: CredentialLookup
  readonly beganMs: number
  armedMs?: number
  sealedMs?: number
  sendingMs?: number
  receivedMs?: number
  credential?: 'none' | 'header' | 'aws'
  sent?: {
    readonly method: string
    readonly target: string
    readonly headers: readonly string[]
    readonly signing?: { readonly canonicalRequest: string; readonly stringToSign: string } | undefined
  }
  received?: { readonly status: number; readonly headers: readonly string[] }
  again?: { readonly reason: Again['reason']; readonly status?: number }
}

/** Whose request it was. */
export interface CallerSeen {
  readonly kind: 'anonymous' | 'authenticated'
  readonly provider?: string
  readonly issuer?: string
  readonly format?: 'jwt' | 'opaque'
  readonly expiresAtMs?: number | undefined
  readonly hash?: string | undefined
  readonly subject?: string
  readonly claims?: object
}

/** A request as it is kept: masked, complete in itself. */
export interface RequestRecord {
  readonly summary: Summary
  readonly httpVersion: string
  readonly peer: string
  readonly received: readonly string[]
  readonly dropped: readonly (readonly [name: string, rule: DropRule])[]
  readonly caller: CallerSeen | undefined
  readonly owned: readonly string[]
  readonly targetOrigin: string | undefined
  readonly attempts: readonly Attempt[]
  readonly decision: object | undefined
  readonly responded: { readonly status: number; readonly headers: readonly string[] } | undefined
  readonly marks: Readonly<Marks>
  /** What became of it that its client was not told; a sentence of ours. */
  readonly detail: string | undefined
  readonly requestBody: ShownBody | undefined
  readonly responseBody: ShownBody | undefined
}

const PER_RECORD = 700
const PER_TEXT = 24

/** About how many bytes of memory a record takes. */
export function sizeOf({ received, attempts, responded, requestBody, responseBody, caller, decision }: RequestRecord) {
  let bytes = PER_RECORD + sizeOfTexts(received) + sizeOfTexts(responded?.headers ?? [])
  for (const { sent, received: answer } of attempts) {
    bytes += PER_RECORD / 2 + sizeOfTexts(sent?.headers ?? []) + sizeOfTexts(answer?.headers ?? [])
    if (sent?.signing !== undefined) bytes += sent.signing.canonicalRequest.length + sent.signing.stringToSign.length
  }
  if (caller?.claims !== undefined) bytes += JSON.stringify(caller.claims).length
  // Kept with the caller, and by all requests of it.
  if (decision !== undefined) bytes += PER_RECORD
  return bytes + sizeOfBody(requestBody) + sizeOfBody(responseBody)
}

/** Characters that are not in Latin-1 make a text of two bytes each. */
const sizeOfBody = (body: ShownBody | undefined): number => (body === undefined ? 0 : 2 * body.text.length + PER_TEXT)

function sizeOfTexts(texts: readonly string[]): number {
  let bytes = 0
  for (const text of texts) bytes += text.length + PER_TEXT
  return bytes
}
