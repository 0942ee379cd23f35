import { describe, expect, test } from 'vitest'
import { route } from '../../support/load/documents/build.ts'
import { document, jsonSchemaAccepts, problemsOf } from '../../support/load/publish/validators.ts'
import { CLIENTS, secret, WRONG_CLIENTS } from '../../support/resources/examples-clients.ts'

type Json = Readonly<Record<string, unknown>>
type Kind = 'MCPExternalAuthConfig' | 'ProxyConfig'

/** Where a document says who we are. */
interface Place {
  readonly name: string
  readonly kind: Kind
  /** The path of the record. */
  readonly at: string
  readonly specOf: (clientAuth: unknown, flat?: Json) => object
  /** Flat fields that say the same. */
  readonly flat: readonly Json[]
  /** The part of a valid object that is rejected here; undefined: nothing. */
  readonly refuses?: (client: Json) => boolean
  /** Whom assertions can be for by name. */
  readonly names: readonly ('issuer' | 'tokenEndpoint')[]
}

const isNameless = ({ clientId }: Json): boolean => clientId === undefined
const twoFields = [{ clientId: 'us' }, { clientId: 'us', clientSecretRef: secret }]
const tokenUrl = 'https://idp.example.com/token'

const ofType = (
  type: string,
  fields: Json,
  more: Omit<Place, 'name' | 'kind' | 'at' | 'specOf'>,
  record = 'clientAuth',
) => ({
  name: record === 'clientAuth' ? type : `${type}.${record}`,
  kind: 'MCPExternalAuthConfig' as const,
  at: `spec.${type}.${record}`,
  specOf: (clientAuth: unknown, flat: Json = {}) => ({ type, [type]: { ...fields, ...flat, [record]: clientAuth } }),
  ...more,
})

const leg = (name: 'idp' | 'target'): Place => {
  const other = name === 'idp' ? 'targetClientId' : 'idpClientId'
  const fields = { idpTokenUrl: tokenUrl, targetTokenUrl: tokenUrl, targetAudience: 'https://a.example', [other]: 'us' }
  const [id, ref] = [`${name}ClientId`, `${name}ClientSecretRef`]
  const flat = [{ [id]: 'us' }, { [id]: 'us', [ref]: secret }]
  // The target's issuer is `targetAudience`.
  const names = name === 'target' ? (['tokenEndpoint', 'issuer'] as const) : (['tokenEndpoint'] as const)
  return ofType('xaa', fields, { flat, refuses: isNameless, names }, `${name}ClientAuth`)
}

const upstream = (type: 'oidc' | 'oauth2', config: Json): Place => ({
  name: `an upstream of type ${type}`,
  kind: 'MCPExternalAuthConfig',
  at: `spec.embeddedAuthServer.upstreamProviders[0].${type}Config.clientAuth`,
  specOf: (clientAuth, flat = {}) => ({
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      upstreamProviders: [{ name: 'corp', type, [`${type}Config`]: { ...config, ...flat, clientAuth } }],
    },
  }),
  flat: twoFields,
  refuses: isNameless,
  names: type === 'oidc' ? ['issuer', 'tokenEndpoint'] : ['tokenEndpoint'],
})

const keyed = [...twoFields, { clientId: 'us', clientKeySecretRef: secret }, { clientAuthMethod: 'client_secret_post' }]
const isOfEntra = ({ method, clientId, tokenFile }: Json): boolean =>
  ['clientSecretPost', 'privateKeyJwt', 'tokenFile'].includes(String(method)) &&
  clientId !== undefined &&
  !JSON.stringify(tokenFile ?? {}).includes('spiffe')

const PLACES: readonly Place[] = [
  ofType('tokenExchange', { tokenUrl, audience: 'a' }, { flat: keyed, names: ['tokenEndpoint'] }),
  {
    name: 'tokenExchange.actor',
    kind: 'MCPExternalAuthConfig',
    at: 'spec.tokenExchange.actor.clientCredentials.clientAuth',
    specOf: (clientAuth, more = {}) => ({
      type: 'tokenExchange',
      tokenExchange: { tokenUrl, audience: 'a', actor: { clientCredentials: { tokenUrl, ...more, clientAuth } } },
    }),
    flat: keyed,
    refuses: ({ method }) => method === 'none',
    names: ['tokenEndpoint'],
  },
  ofType(
    'clientCredentials',
    { tokenUrl },
    {
      flat: keyed,
      refuses: ({ method }) => method === 'none',
      names: ['tokenEndpoint'],
    },
  ),
  {
    ...ofType(
      'clientCredentials',
      { issuerUrl: 'https://idp.example.com' },
      {
        flat: keyed,
        refuses: ({ method }) => method === 'none',
        names: ['issuer', 'tokenEndpoint'],
      },
    ),
    name: 'clientCredentials with an issuer',
  },
  ofType(
    'obo',
    { tenantId: 'contoso.com', audience: 'a' },
    {
      flat: twoFields,
      refuses: (client) => !isOfEntra(client),
      names: ['tokenEndpoint'],
    },
  ),
  leg('idp'),
  leg('target'),
  upstream('oidc', { issuerUrl: 'https://idp.example.com' }),
  upstream('oauth2', {
    authorizationEndpoint: 'https://idp.example.com/authorize',
    tokenEndpoint: tokenUrl,
    userInfo: { endpointUrl: 'https://idp.example.com/user' },
  }),
  {
    name: 'introspection',
    kind: 'ProxyConfig',
    at: 'spec.auth.oauth.providers[0].clientAuth',
    specOf: (clientAuth, flat = {}) => {
      const urls = { issuerUrl: 'https://idp.example.com', introspectionUrl: 'https://idp.example.com/introspect' }
      const providers = [{ name: 'corp', audience: 'mcp', ...urls, ...flat, clientAuth }]
      return {
        auth: { oauth: { resourceUrl: 'https://mcp.example.com', providers } },
        routes: [route()],
      }
    },
    flat: [{ clientId: 'us' }, { clientId: 'us', clientSecretFile: '/run/secret' }],
    names: ['issuer'],
  },
]

describe.each(PLACES)('who we are at $name', ({ kind, at, specOf, flat, refuses = () => false, names }) => {
  /** Problems in files, and whether an editor with the schema reports them, too. */
  const problemsAt = (spec: object): string => {
    const value = JSON.parse(JSON.stringify(document(spec, kind))) as Json
    const said = problemsOf(value).filter((problem) => problem.startsWith(at))
    expect(jsonSchemaAccepts(kind, value)).toBe(said.length === 0)
    return said.join('\n')
  }

  test.each(CLIENTS)('%s is accepted where it is supported', (_name, client) => {
    expect(problemsAt(specOf(client)) !== '').toBe(refuses(client))
  })

  test.each(WRONG_CLIENTS)('%s is refused', (_name, client, problem) => {
    expect(problemsAt(specOf(client))).toContain(`${at}${problem}`)
  })

  test.each(flat.map((fields) => [JSON.stringify(fields), fields] as const))(
    '%s beside it is refused',
    (_name, fields) => {
      const client = { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret } }
      expect(problemsAt(specOf(client, fields))).toContain('expected only one of the two forms')
    },
  )

  test.each(['issuer', 'tokenEndpoint'] as const)(
    'assertions for the %s can be made, or are refused',
    (assertionAudience) => {
      const client = { method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret }, assertionAudience }
      expect(problemsAt(specOf(client)) === '').toBe(names.includes(assertionAudience))
    },
  )
})
