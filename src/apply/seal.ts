import type { Apply, Body, Clock, Credential, CredentialKind, Sealed } from '../core/index.ts'
import type { Applier, Draft } from './applier.ts'
import { refuseAwsChunked } from './aws.ts'

/** One applier per kind of credential; a new kind does not compile until it has its row. */
export type Appliers = { readonly [K in CredentialKind]: Applier<Extract<Credential, { kind: K }>> }

export interface ApplyOptions {
  /** `host[:port]` of the target, as sent in the Host header. */
  readonly host: string
  /** True when the credential of this type signs the body, so that it must be kept. */
  readonly needsBody: boolean
  readonly clock: Clock
}

/** A backend whose clock is further off than this is not believed: signatures for other days would be handed out. */
const MAX_SKEW_MS = 24 * 60 * 60 * 1000

/**
 * The apply stage of one route with the given appliers: the headers of the match stage, then host and length, then the
 * credential, and nothing after it. Each attempt starts from the same headers. The only place that mints `Sealed`.
 */
export function createSeal({ host, needsBody, clock }: ApplyOptions, appliers: Appliers): Apply {
  let skewMs = 0
  return {
    needsBody,
    admit({ request }) {
      if (needsBody) refuseAwsChunked(request.headers)
    },
    apply(armed, attempt) {
      const { matched } = armed.known
      const { body, inbound, route } = matched
      const headers = ['host', host].concat(matched.headers)
      const length = lengthOf(body)
      if (length !== undefined) headers.push('content-length', String(length))
      // One object is draft and sealed request in turn: it is made on each attempt of each request.
      const draft = {
        armed,
        inbound,
        route,
        method: inbound.method,
        path: matched.backendPath,
        host,
        headers,
        body,
        nowMs: clock.now() + skewMs,
        final: attempt.final,
      }
      // Before the credential: what signs covers them, and what is set last is what the type sets.
      if (armed.forwarded !== undefined) for (const one of armed.forwarded) appliers.header(draft, one)
      applyTo(draft, armed.credential, appliers)
      return draft as unknown as Sealed
    },
    noteServerTime(serverTimeMs) {
      const skew = serverTimeMs - clock.now()
      if (Math.abs(skew) <= MAX_SKEW_MS) skewMs = skew
    },
  }
}

/** Puts a credential on a draft, by the applier of its kind. */
export function applyTo(draft: Draft, credential: Credential, appliers: Appliers): void {
  switch (credential.kind) {
    case 'none':
      return appliers.none(draft, credential)
    case 'header':
      return appliers.header(draft, credential)
    case 'aws':
      return appliers.aws(draft, credential)
  }
}

function lengthOf(body: Body): number | undefined {
  if (body.kind === 'kept') return body.bytes.length
  return body.kind === 'stream' ? body.length : undefined
}
