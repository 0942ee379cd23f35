import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { JSONWebKeySet } from 'jose'
import { labConfig } from '../../src/cli/index.ts'
import { Secret } from '../../src/core/index.ts'
import { type LabClient, type LabIdentityProvider, type LabSts, type LabWorkspace, ownerOfKey } from '../index.ts'
import { AUDIENCE, SERVICE_ROLE } from './lab-aws.ts'
import { LAB_PORTS } from './lab-ports.ts'

const BACKEND_AUDIENCE = 'lab-backend'
/** The same as an application of the tenant. */
const BACKEND_URI = 'api://lab-backend'
const REGION = 'eu-west-1'
const SERVICE = 'cloud-mcp'

/** Where logins come back to; on loopback the port may be another (RFC 8252 §7.3). */
const LOGIN_REDIRECTS = [
  '/upstream/oauth/callback',
  '/upstream-exchange/oauth/callback',
  '/xaa/oauth/callback',
  '/connect/callback',
].map((path) => `http://127.0.0.1:${LAB_PORTS.proxy}${path}`)

/** The proxy as a client with a token of its own. */
export const LAB_PROXY = 'lab-proxy'

/** A secret of the lab. */
export const secretOf = async (name: string, key: string): Promise<Secret> =>
  new Secret((await readFile(path.join(labConfig(), 'secrets', name, key), 'utf8')).trimEnd())

/** The clients of the lab's identity provider; `proxyUrl` is where one of them gets identity assertions for. */
export async function readClients(proxyUrl: string): Promise<LabClient[]> {
  const [exchange, introspection, service, login, proxy, obo] = await Promise.all(
    ['lab-exchange', 'lab-introspection', 'lab-service', 'lab-login', 'lab-proxy', 'lab-obo'].map((name) =>
      secretOf(name, 'client-secret'),
    ),
  )
  if (exchange === undefined || introspection === undefined || service === undefined) return []
  if (login === undefined || proxy === undefined || obo === undefined) return []
  return [
    { id: 'lab-exchange', secret: exchange, may: ['exchange'], audiences: [BACKEND_AUDIENCE] },
    { id: 'lab-introspection', secret: introspection, may: ['introspect'] },
    {
      id: 'lab-login',
      secret: login,
      may: ['authorization_code'],
      redirectUris: LOGIN_REDIRECTS,
      assertsTo: [{ audience: proxyUrl, clientId: 'lab-xaa' }],
    },
    { id: LAB_PROXY, secret: proxy, may: ['client_credentials'], audiences: [BACKEND_AUDIENCE] },
    // Entra ID takes tokens that were issued for the very client that shows them.
    { id: AUDIENCE, secret: obo, may: ['on_behalf_of'], audiences: [BACKEND_URI] },
    { id: 'lab-service', secret: service, may: ['client_credentials'], audiences: [AUDIENCE] },
  ]
}

/** Requirements of each mount of the backend. */
export async function mountsFor(identity: LabIdentityProvider, sts: LabSts, workspace: LabWorkspace, proxyUrl: string) {
  const workspaceUser = (token: string) => {
    const issued = workspace.verify(token)
    return issued && { workspaceUser: issued.user.login, scope: issued.scope }
  }
  return {
    '/unauthenticated': { kind: 'none' },
    '/header-injection': { kind: 'header', name: 'X-Api-Key', value: await secretOf('lab-api-key', 'value') },
    '/bearer-token': { kind: 'bearer', token: await secretOf('lab-bearer', 'token') },
    '/rules': { kind: 'bearer', token: await secretOf('lab-bearer', 'token') },
    '/client-credentials': {
      kind: 'jwt',
      issuer: identity.url,
      audience: BACKEND_AUDIENCE,
      subject: LAB_PROXY,
      keys: identity.jwks,
      isRevoked: identity.isRevoked,
    },
    '/token-exchange': {
      kind: 'jwt',
      issuer: identity.url,
      audience: BACKEND_AUDIENCE,
      keys: identity.jwks,
      isRevoked: identity.isRevoked,
    },
    '/obo': {
      kind: 'jwt',
      issuer: identity.tlsUrl ?? '',
      audience: BACKEND_URI,
      keys: identity.jwks,
      isRevoked: identity.isRevoked,
    },
    '/upstream': { kind: 'known', verify: workspaceUser },
    '/connected': { kind: 'known', verify: workspaceUser },
    '/connected-key': { kind: 'known', verify: ownerOfKey },
    '/upstream-exchange': {
      kind: 'jwt',
      issuer: identity.tlsUrl ?? '',
      audience: BACKEND_AUDIENCE,
      keys: identity.jwks,
      isRevoked: identity.isRevoked,
    },
    '/xaa': {
      kind: 'jwt',
      issuer: proxyUrl,
      audience: `${proxyUrl}/xaa`,
      keys: async () => (await (await fetch(`${proxyUrl}/.well-known/jwks.json`)).json()) as JSONWebKeySet,
      // Tokens issued for an assertion expire on their own.
      isRevoked: () => false,
    },
    '/cloud-sts': { kind: 'sigv4', region: REGION, service: SERVICE, lookup: sts.lookup },
    '/aws-service': { kind: 'sigv4', region: REGION, service: SERVICE, lookup: sts.lookup, roleArn: SERVICE_ROLE },
    '/aws-chained': { kind: 'sigv4', region: REGION, service: SERVICE, lookup: sts.lookup },
  } as const
}
