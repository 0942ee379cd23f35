import { expect, it } from 'vitest'
import { embeddedAuthServer, embeddedAuthServerRecord } from '../../../../src/resources/embedded-auth-server.ts'

it.each([
  ['true', [/^it asks for no claim: whatever the issuer signs for us counts/]],
  ["claims.sub == 'job'", []],
  ["claims.groups == 'agents'", [/"claims.groups" is a list in most tokens/]],
])('whose tokens count by %s is remarked on', (match, messages) => {
  const spec = embeddedAuthServer().parse({
    issuer: 'https://auth.example.com',
    hmacSecretRefs: [{ name: 'as', key: 'hmac' }],
    signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
    upstreamProviders: [
      { name: 'a', type: 'oidc', oidcConfig: { issuerUrl: 'https://id.example.com', clientId: 'a' } },
    ],
    workloads: [{ issuer: 'https://ci.example.com', match }],
  })
  const path = ['workloads', 0, 'match']
  const remarks = messages.map((message) => ({ path, message: expect.stringMatching(message) as unknown }))
  expect(embeddedAuthServerRecord.remarks(spec)).toEqual(remarks)
})
