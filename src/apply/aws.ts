import type { IncomingHttpHeaders } from 'node:http'
import { Failure, type AwsCredential, type Body } from '../core/index.ts'
import { removeHeaders } from '../http/index.ts'
import type { Applier } from './applier.ts'
import { amzDate, authorization, EMPTY_HASH, isS3, payloadHash, signingKey } from './sigv4.ts'
import { targetOfS3 } from './sigv4-canonical.ts'

/**
 * Signs the request with SigV4 (decisions §3.5) and adds `x-amz-date`, `x-amz-security-token`, `x-amz-content-sha256` and
 * `authorization`; copies of them that are there already go away. Must be the last that happens to a draft. Throws
 * `internal_error` for a body that flows: its hash can't be known, and an unsigned payload is never sent.
 */
export const applyAws: Applier<AwsCredential> = (draft, credential) => {
  const { headers } = draft
  const { region, service } = credential
  const date = amzDate(draft.nowMs)
  const bodyHash = hashOf(draft.body)
  draft.path = isS3(service) ? targetOfS3(withoutPlus(draft.path)) : withoutPlus(draft.path)
  removeHeaders(headers, OWNED)
  headers.push('x-amz-date', date)
  if (credential.sessionToken !== undefined) headers.push('x-amz-security-token', credential.sessionToken.reveal())
  headers.push('x-amz-content-sha256', bodyHash)
  const input = { method: draft.method, target: draft.path, headers, payloadHash: bodyHash }
  const key = keyOf(credential, date.slice(0, 8))
  headers.push('authorization', authorization(input, { date, region, service }, credential.accessKeyId, key))
}

/**
 * Throws `aws_chunked` for a body whose pieces the client has signed: our signature does not cover theirs, and S3 would
 * take framing for content.
 */
export function refuseAwsChunked(headers: IncomingHttpHeaders): void {
  const { 'content-encoding': coding = '', 'x-amz-content-sha256': digest = '' } = headers
  if (/\baws-chunked\b/i.test(coding) || /^streaming-/i.test(String(digest))) throw new Failure('aws_chunked')
}

/** A `+` in a query is a space to some verifiers and a plus to others; who sends it there means a space (WHATWG URL §5.1). */
function withoutPlus(target: string): string {
  const queryAt = target.indexOf('?')
  return queryAt < 0 ? target : target.slice(0, queryAt) + target.slice(queryAt).replaceAll('+', '%20')
}

function hashOf(body: Body): string {
  if (body.kind === 'none') return EMPTY_HASH
  if (body.kind === 'kept') return payloadHash(body.bytes)
  throw new Failure('internal_error', { detail: 'a request body was not kept for signing' })
}

/** The signing key lives with its credential, so that many callers do not push each other out of a shared table. */
function keyOf(credential: AwsCredential, day: string): Uint8Array {
  const { signing } = credential
  if (signing.key === undefined || signing.day !== day) {
    signing.key = signingKey(credential.secretAccessKey.reveal(), day, credential.region, credential.service)
    signing.day = day
  }
  return signing.key
}

const OWNED = new Set(['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256'])
