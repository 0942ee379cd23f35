import path from 'node:path'
import { parse } from 'yaml'
import { type Members, section } from './page.ts'
import { clusterOf, SECRET, SPIFFE_ID, WORKLOAD } from './realm.ts'
import { ALGORITHMS, type World } from './world.ts'

/** A route of the proxy, and the outcome of a request there. */
export interface Row {
  readonly what: string
  readonly spec: Members
  /** Token of the request: of alice in the realm, or of a user of the other issuer. */
  readonly caller: 'people' | 'elsewhere' | 'stranger'
  /** Client that introspects the caller's token at Keycloak; undefined: not needed. */
  readonly introspects?: Members
  /** The client that the backend's token is of; undefined: it is refused. */
  readonly client?: string
  readonly audience?: string
  /** Reason, and what the log says of it. */
  readonly refused?: readonly [reason: string, log: RegExp]
}

const yamlOf = (heading: string): Members => parse(section(heading).yaml[0] ?? '') as Members

/** The record of a section, for another client, with other members below. */
function clientAuth(heading: string, clientId: string, more: Members = {}): Members {
  const { clientAuth: record } = yamlOf(heading) as { clientAuth: Members }
  return { ...record, ...('clientId' in record ? { clientId } : {}), ...more }
}

/** Every way to authenticate that docs/keycloak.md has, right and wrong. */
export async function rowsFor({ directory, standIn, secret }: World, realm: string): Promise<readonly Row[]> {
  const tokenUrl = `${realm}/protocol/openid-connect/token`
  const ref = (key: string) => ({ name: 'keycloak', key })
  secret('client-secret', SECRET)
  secret('wrong-secret', 'not it')

  const exchange = (auth: Members, more: Members = {}): Members => ({
    type: 'tokenExchange',
    tokenExchange: { tokenUrl, audience: 'crm', clientAuth: auth, ...more },
  })
  const exchanged = (what: string, client: string, auth: Members, more: Members = {}): Row => ({
    what,
    spec: exchange(auth, more),
    caller: 'people',
    client,
    audience: 'crm',
  })
  const refused = (
    what: string,
    auth: Members,
    log = /invalid_client|unauthorized_client/,
    more: Members = {},
  ): Row => ({
    what,
    spec: exchange(auth, more),
    caller: 'people',
    refused: ['config_error', log],
  })

  const basic = (clientId: string, key = 'client-secret'): Members => ({
    method: 'clientSecretBasic',
    clientId,
    secretRef: ref(key),
  })
  const signed = (clientId: string, key: Members, more: Members = {}) => clientAuth('A key', clientId, { key, ...more })
  const inTls = (name: string) =>
    clientAuth('A certificate in TLS', 'mcp-extauth-tls', {
      tls: { certificateSecretRef: ref(`${name}.crt`), keySecretRef: ref(`${name}.key`) },
    })
  const inFile = async (
    heading: string,
    name: string,
    claims: Members,
    how: Parameters<typeof standIn.mint>[1] = {},
  ): Promise<Members> => {
    const { clientAuth: record } = yamlOf(heading) as { clientAuth: { tokenFile: Members } }
    secret(name, await standIn.mint({ aud: realm, ...claims }, how))
    return { ...record, tokenFile: { ...record.tokenFile, path: path.join(directory, 'secrets', 'keycloak', name) } }
  }
  const workload = { iss: clusterOf(standIn), sub: WORKLOAD }
  const ofCluster = (name: string, claims: Members = {}, how: { readonly forged?: boolean } = {}) =>
    inFile('A token of the cluster', name, { ...workload, ...claims }, how)
  const svid = (name: string, claims: Members = {}, how: { readonly forged?: boolean } = {}) =>
    inFile('An SVID', name, { iss: 'https://spire.example.com', sub: SPIFFE_ID, ...claims }, how)

  const key = { secretRef: ref('key.key') }
  return [
    { ...exchanged('the page', 'mcp-extauth', {}), spec: {} },
    refused('a wrong secret', basic('mcp-extauth', 'wrong-secret')),
    {
      ...exchanged('', '', basic('mcp-extauth-stranger')),
      what: 'a client that the token is not for',
      refused: ['exchange_denied', /access_denied|invalid_request/],
    },
    {
      ...refused('a client without token exchange', basic('mcp-extauth-off')),
      refused: ['exchange_denied', /invalid_request/],
    },
    refused('an audience that is no client', basic('mcp-extauth'), /invalid_client/, { audience: 'billing' }),
    refused('another realm', basic('mcp-extauth'), /answered 404/, {
      tokenUrl: tokenUrl.replace('company', 'unknown'),
    }),
    refused('a scope that is none', basic('mcp-extauth'), /invalid_scope/, { scopes: ['nothing'] }),
    exchanged('client-jwt, RS256', 'mcp-extauth-key', signed('mcp-extauth-key', key)),
    exchanged(
      'client-jwt, certificate in the header, audience as text',
      'mcp-extauth-key',
      signed(
        'mcp-extauth-key',
        { ...key, algorithm: 'RS256', certificateSecretRef: ref('key.crt'), legacyThumbprint: true },
        { assertionAudience: realm },
      ),
      { tokenUrl: `${standIn.url}/token` },
    ),
    ...ALGORITHMS.map((alg) =>
      exchanged(
        `client-jwt, ${alg}`,
        'mcp-extauth-keys',
        signed('mcp-extauth-keys', { secretRef: ref(`${alg}.jwk`), algorithm: alg }),
      ),
    ),
    refused('client-jwt, another key', signed('mcp-extauth-key', { secretRef: ref('other.key') })),
    refused('client-jwt, another algorithm', signed('mcp-extauth-key', { ...key, algorithm: 'RS512' })),
    refused(
      'client-jwt, another audience',
      signed('mcp-extauth-key', key, { assertionAudience: 'https://elsewhere.example' }),
    ),
    refused('client-jwt, a secret in its place', basic('mcp-extauth-key')),
    exchanged('client-x509', 'mcp-extauth-tls', inTls('tls')),
    refused('client-x509, another subject', inTls('other')),
    {
      ...refused('client-x509, another authority', inTls('foreign')),
      // Its TLS rejects unknown clients.
      refused: ['identity_provider_unavailable', /client certificate/],
    },
    exchanged('federated, a projected token', 'mcp-extauth-cluster', await ofCluster('projected')),
    refused('federated, another audience', await ofCluster('projected-aud', { aud: 'https://elsewhere.example' })),
    refused('federated, another workload', await ofCluster('projected-sub', { sub: `${WORKLOAD}-2` })),
    refused('federated, another key', await ofCluster('projected-key', {}, { forged: true })),
    exchanged('federated, an SVID', 'mcp-extauth-svid', await svid('svid')),
    refused('federated, another SPIFFE ID', await svid('svid-sub', { sub: `${SPIFFE_ID}/2` })),
    refused('federated, an SVID by another key', await svid('svid-key', {}, { forged: true })),
    ...introspected(exchange(basic('mcp-extauth')), {
      right: signed('mcp-extauth-key', key),
      ofAnother: signed('mcp-extauth-key', { secretRef: ref('other.key') }),
      withSecret: basic('mcp-extauth', 'wrong-secret'),
    }),
    ...ownTokens(realm, signed('mcp-extauth-key', key), inTls('tls')),
    ...assertions(standIn.url, realm, ref('client-secret')),
  ]
}

/** Callers whose tokens Keycloak is asked about: the issuer is the audience of the assertion. */
function introspected(
  spec: Members,
  by: Readonly<Record<'right' | 'ofAnother' | 'withSecret', Members>>,
): readonly Row[] {
  const row = { spec, caller: 'people' } as const
  const refused = ['config_error', /introspection endpoint .*(invalid_client|unauthorized_client)/] as const
  return [
    { ...row, what: 'introspection, client-jwt', introspects: by.right, client: 'mcp-extauth', audience: 'crm' },
    { ...row, what: 'introspection, another key', introspects: by.ofAnother, refused },
    { ...row, what: 'introspection, a wrong secret', introspects: by.withSecret, refused },
  ]
}

/** `clientCredentials`, whose endpoint is discovered: the issuer is the audience, and TLS goes to the alias for it. */
function ownTokens(realm: string, signed: Members, inTls: Members): readonly Row[] {
  const own = (what: string, client: string, auth: Members): Row => ({
    what,
    spec: { type: 'clientCredentials', clientCredentials: { issuerUrl: realm, clientAuth: auth } },
    caller: 'people',
    client,
  })
  return [
    own('clientCredentials, client-jwt for the issuer', 'mcp-extauth-key', signed),
    own('clientCredentials, client-x509 at the alias', 'mcp-extauth-tls', inTls),
  ]
}

/** The grant `jwt-bearer`: as `obo` sends it, and as the second leg of `xaa` does. */
function assertions(standIn: string, realm: string, clientSecretRef: Members): readonly Row[] {
  const obo = {
    tenantId: '72f988bf-0000-4000-8000-2d7cd011db47',
    authority: standIn,
    clientId: 'mcp-extauth-grant',
    clientSecretRef,
    scopes: ['profile'],
  }
  const xaa = (whose: string, targetAudience = realm): Members => ({
    type: 'xaa',
    xaa: {
      idpTokenUrl: `${standIn}/id-jag/${whose}`,
      idpClientId: 'mcp-extauth-there',
      idpClientSecretRef: clientSecretRef,
      targetTokenUrl: `${realm}/protocol/openid-connect/token`,
      targetClientId: 'mcp-extauth-grant',
      targetClientSecretRef: clientSecretRef,
      targetAudience,
      scopes: ['profile'],
    },
  })
  const denied = ['exchange_denied', /invalid_grant/] as const
  return [
    { what: 'obo, jwt-bearer', spec: { type: 'obo', obo }, caller: 'elsewhere', client: 'mcp-extauth-grant' },
    {
      what: 'obo, a user who is not linked',
      spec: { type: 'obo', obo },
      caller: 'stranger',
      refused: ['invalid_token', /invalid_grant/],
    },
    { what: 'xaa, its target', spec: xaa('alice-there'), caller: 'elsewhere', client: 'mcp-extauth-grant' },
    { what: 'xaa, a user who is not linked', spec: xaa('bob-there'), caller: 'elsewhere', refused: denied },
    {
      what: 'xaa, an assertion for another server',
      spec: xaa('alice-there', 'https://elsewhere.example'),
      caller: 'elsewhere',
      refused: denied,
    },
    { what: 'xaa, an assertion by another key', spec: xaa('forged'), caller: 'elsewhere', refused: denied },
  ]
}
