import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, SPECS, workload } from '../../../support/load/documents/build.ts'
import { CLIENTS, WRONG_CLIENTS } from '../../../support/resources/examples-clients.ts'

const idp = { jwksUrl: 'https://idp.example.com/keys', introspectionUrl: 'https://idp.example.com/introspect' }
const remote = (spec: object): object =>
  workload('MCPRemoteProxy', 'w', {
    remoteUrl: 'https://backend.example.com/mcp',
    externalAuthConfigRef: { name: 'token' },
    ...spec,
  })

/** Where a manifest describes a provider; `more` are fields of that description. */
const PLACES: readonly (readonly [name: string, documents: (more: object) => readonly object[]])[] = [
  [
    'auth',
    (more) => {
      const provider = { name: 'corp', issuerUrl: 'https://idp.example.com', audience: 'mcp', ...idp, ...more }
      return [remote({ auth: { oauth: { resourceUrl: 'https://mcp.example.com', providers: [provider] } } })]
    },
  ],
  [
    'oidcConfig',
    (more) => {
      const inline = { issuer: 'https://idp.example.com', audience: 'mcp', ...idp, ...more }
      return [remote({ oidcConfig: { type: 'inline', inline } })]
    },
  ],
  [
    'MCPOIDCConfig',
    (more) => {
      const inline = { issuer: 'https://idp.example.com', ...idp, ...more }
      return [
        workload('MCPOIDCConfig', 'corp', { type: 'inline', inline }),
        remote({ oidcConfigRef: { name: 'corp', audience: 'mcp' } }),
      ]
    },
  ],
]

describe.each(PLACES)('introspection as %s says it', (_place, documents) => {
  const problemsOf = (more: object): string => {
    const loaded = load(externalAuth(SPECS.bearerToken), ...documents(more))
    return [...loaded.problems, ...(resolveProxy(loaded).problems ?? [])].map(renderProblem).join('\n')
  }
  test.each(CLIENTS)('is asked with %s', (_name, clientAuth) => {
    expect(problemsOf({ clientAuth })).toBe('')
    const { config } = resolveProxy(load(externalAuth(SPECS.bearerToken), ...documents({ clientAuth })))
    const callers = config?.routes[0]?.callers
    if (callers?.mode !== 'oauth') throw new Error('with anonymous callers')
    expect(callers.oauth.providers).toMatchObject([{ clientAuth }])
  })

  test.each<[string, object, string]>([
    ...WRONG_CLIENTS.map(([name, clientAuth, problem]): [string, object, string] => [name, { clientAuth }, problem]),
    [
      'said twice',
      { clientId: 'us', clientAuth: { method: 'none', clientId: 'us' } },
      'expected only one of the two forms',
    ],
    [
      'said twice by a secret',
      { clientSecretRef: { name: 'a', key: 'b' }, clientAuth: { method: 'none', clientId: 'us' } },
      'expected only one of the two forms',
    ],
    [
      'without an endpoint',
      { introspectionUrl: undefined, clientAuth: { method: 'none', clientId: 'us' } },
      '"clientAuth" needs "introspectionUrl"',
    ],
    [
      'for a token endpoint',
      {
        clientAuth: {
          method: 'privateKeyJwt',
          clientId: 'us',
          assertionAudience: 'tokenEndpoint',
          key: { secretRef: { name: 'a', key: 'b' } },
        },
      },
      'introspection has no token endpoint',
    ],
  ])('is refused: %s', (_name, more, problem) => {
    expect(problemsOf(more)).toContain(problem.replace(/^\./, ''))
  })
})

test('a path of a token is beside the file that names it', () => {
  const clientAuth = { method: 'tokenFile', clientId: 'us', tokenFile: { path: 'tokens/us' } }
  for (const [, documents] of PLACES) {
    const { config } = resolveProxy(load(externalAuth(SPECS.bearerToken), ...documents({ clientAuth })))
    const callers = config?.routes[0]?.callers
    if (callers?.mode !== 'oauth') throw new Error('with anonymous callers')
    expect(callers.oauth.providers).toMatchObject([
      { clientAuth: { tokenFile: { path: expect.stringMatching(/^\/.*\/tokens\/us$/) as unknown } } },
    ])
  }
})
