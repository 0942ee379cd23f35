import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyAws } from '../../src/apply/aws.ts'
import { type Body, Secret } from '../../src/core/index.ts'
import { type IssuedCredentials, verifySigv4 } from '../../src/lab/index.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const ISSUED: IssuedCredentials = {
  accessKeyId: 'ASIALAB1234567890ABC',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'IQoJb3JpZ2luX2VjEXAMPLE==',
  expiresAtMs: NOW + 900_000,
  roleArn: 'arn:cloud:iam::000000000000:role/lab',
  sessionName: 'alice',
  subject: 'alice',
}
const [region, service] = ['eu-west-1', 'cloud-mcp']
const EXPECTED = { region, service, nowMs: NOW, lookup: () => ISSUED }

// What may stand in a request target (RFC 3986), escapes of every byte, and what clients put there all the same.
const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...`abcXYZ019-._~!$'()*+,;:@[]|^"<>`.split('')) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`) },
  { weight: 1, arbitrary: fc.constantFrom('%', '%2', '%zz', '\u00fc', '\u00ff') },
)
const word = fc.array(character, { maxLength: 8 }).map((parts) => parts.join(''))
const path = fc
  .array(fc.oneof({ weight: 8, arbitrary: word }, { weight: 1, arbitrary: fc.constantFrom('', '.', '..') }), {
    maxLength: 5,
  })
  .map((segments) => `/${segments.join('/')}`)
const parameter = fc.oneof(
  word,
  fc.tuple(word, word).map(([name, value]) => `${name}=${value}`),
  fc.constant(''),
)
const target = fc.oneof(
  path,
  fc.tuple(path, fc.array(parameter, { maxLength: 5 })).map(([p, q]) => `${p}?${q.join('&')}`),
)
const headerValue = fc
  .array(fc.constantFrom(...'ab Z0;=,/"\u00e9'.split('')), { maxLength: 12 })
  .map((parts) => parts.join(''))
const headerName = fc.constantFrom(
  'Content-Type',
  'Mcp-Method',
  'mcp-name',
  'Mcp-Param-Region',
  'Accept',
  'X-Other',
  'traceparent',
)
const headers = fc.array(fc.tuple(headerName, headerValue), { maxLength: 6 }).map((pairs) => pairs.flat())
const body = fc.oneof(
  fc.constant<Body>({ kind: 'none' }),
  fc.uint8Array({ maxLength: 64 }).map((bytes): Body => ({ kind: 'kept', bytes: Buffer.from(bytes) })),
)
const request = fc.record({ method: fc.constantFrom('GET', 'POST', 'DELETE'), target, headers, body })

const bytesOf = (content: Body) => (content.kind === 'kept' ? content.bytes : Buffer.alloc(0))

function sign(input: { method: string; target: string; headers: readonly string[]; body: Body }) {
  const draft = {
    method: input.method,
    path: input.target,
    host: 'mcp.example.com:8443',
    headers: ['host', 'mcp.example.com:8443', ...input.headers],
    body: input.body,
    nowMs: NOW,
  }
  applyAws(draft, {
    kind: 'aws',
    accessKeyId: ISSUED.accessKeyId,
    secretAccessKey: new Secret(ISSUED.secretAccessKey),
    sessionToken: new Secret(ISSUED.sessionToken),
    region,
    service,
    signing: { day: '', key: undefined },
  })
  return { method: input.method, target: input.target, headers: draft.headers, body: bytesOf(input.body) }
}

test("whatever the proxy's signer signs, the lab's verifier accepts, and nothing that was changed after", () => {
  fc.assert(
    fc.property(request, (input) => {
      const signed = sign(input)
      expect(verifySigv4(signed, EXPECTED)).toEqual({ ok: true, credentials: ISSUED })
      const changed = { ...signed, body: Buffer.concat([signed.body, Buffer.from('x')]) }
      expect(verifySigv4(changed, EXPECTED)).toMatchObject({ ok: false })
      expect(verifySigv4({ ...signed, target: `${signed.target}y` }, EXPECTED)).toMatchObject({ ok: false })
    }),
    { numRuns: 2000, seed: 20_261_121 },
  )
})
