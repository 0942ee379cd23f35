import { Sha256 } from '@aws-crypto/sha256-js'
import { SignatureV4 } from '@smithy/signature-v4'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { applyAws } from '../../../src/apply/aws.ts'
import { isSigned } from '../../../src/apply/sigv4-canonical.ts'
import {
  body,
  credentialOf,
  draftOf,
  headerOf,
  headers,
  keys,
  parameters,
  path,
  rawQuery,
  timeMs,
  type Keys,
} from '../../support/apply/support/signing.ts'

/** The signature of smithy for the same request. It takes parameters and headers as objects and signs every header it is given. */
async function smithySignature(
  request: {
    method: string
    path: string
    pairs: readonly (readonly [string, string])[]
    headers: readonly (readonly [string, string])[]
    body: Buffer
  },
  { region, service, ...credentials }: Keys,
  nowMs: number,
): Promise<string | undefined> {
  const query: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const [name, value] of request.pairs) (query[name] ??= []).push(value)
  const signed = request.headers.filter(([name]) => isSigned(name.toLowerCase()))
  const signer = new SignatureV4({ region, service, credentials, sha256: Sha256, applyChecksum: true })
  const { headers } = await signer.sign(
    {
      method: request.method,
      protocol: 'https:',
      hostname: 'backend.example',
      path: request.path,
      query,
      headers: { host: 'backend.example', ...Object.fromEntries(signed) },
      body: request.body,
    },
    { signingDate: new Date(nowMs) },
  )
  return headers['authorization']
}

describe('the signature is the one that @smithy/signature-v4 makes', () => {
  test('for generated requests', async () => {
    const request = fc.record({
      method: fc.constantFrom('GET', 'POST', 'DELETE'),
      path,
      pairs: parameters,
      headers,
      body,
    })
    await fc.assert(
      fc.asyncProperty(request, keys, timeMs, async (one, theirs, nowMs) => {
        const draft = draftOf({ ...one, query: rawQuery(one.pairs) }, nowMs)
        applyAws(draft, credentialOf(theirs))
        expect(headerOf(draft.headers, 'authorization')).toBe(await smithySignature(one, theirs, nowMs))
      }),
      { numRuns: 500, seed: 5 },
    )
  })
})
