import { readFileSync } from 'node:fs'
import { ALICE } from './login.ts'
import { type Members, merged, section } from './page.ts'
import type { World } from './world.ts'

/** Client secret of those who have one. */
export const SECRET = 'secret: of/us'
/** Alice, as the other issuer knows her. */
export const ALICE_THERE = 'alice-there'
/** The workload whose token stands in a file. */
export const WORKLOAD = 'system:serviceaccount:mcp:extauth'
export const SPIFFE_ID = 'spiffe://example.org/mcp/extauth'

/** The issuer of the workload's token. */
export const clusterOf = ({ url }: { readonly url: string }): string => `${url}/cluster`

const derOf = (certificate: string): string => readFileSync(certificate, 'utf8').replaceAll(/-----[A-Z ]+-----|\s/g, '')

/**
 * The realm that docs/keycloak.md describes: its clients, one of them per way to authenticate, named after it; the issuers
 * that it trusts; alice, who is known to one of them too.
 */
export function companyRealm({ standIn, pairs, jwks }: World): object {
  const [crm = {}, base = {}] = section('A token for the backend, exchanged').json
  const [key = {}] = section('A key').json
  const [tls = {}] = section('A certificate in TLS').json
  const [cluster = {}, ofCluster = {}] = section('A token of the cluster').json
  const [spire = {}, withSvid = {}] = section('An SVID').json
  const [own = {}] = section("A token of the proxy's own").json
  const [elsewhere = {}, granted = {}] = section('Users of another identity provider').json
  const keys = /https:\/\/\w+\.example\.com(\/openid\/v1\/jwks|\/keys)/g
  const at = (provider: object): object =>
    JSON.parse(
      JSON.stringify(provider)
        .replaceAll(keys, `${standIn.url}/keys`)
        .replaceAll('https://cluster.example.com', clusterOf(standIn))
        .replaceAll('https://id.example.com', standIn.url),
    ) as object
  const certificate = { 'jwt.credential.certificate': derOf(pairs.key.certificate) }
  const keySet = { 'use.jwks.string': 'true', 'jwks.string': JSON.stringify(jwks) }
  const client = (name: string, ...parts: readonly Members[]) =>
    merged(base, own, { clientId: name, secret: SECRET }, ...parts)
  const clients = [
    client('mcp-extauth'),
    client('mcp-extauth-stranger'),
    client('mcp-extauth-off', { attributes: { 'standard.token.exchange.enabled': 'false' } }),
    client('mcp-extauth-key', key, { attributes: certificate }),
    client('mcp-extauth-keys', key, { attributes: { ...keySet, 'token.endpoint.auth.signing.alg': '' } }),
    client('mcp-extauth-tls', tls),
    client('mcp-extauth-cluster', ofCluster),
    client('mcp-extauth-svid', withSvid),
    client('mcp-extauth-grant', granted),
  ]
  const audience = (name: string) => ({
    name,
    protocol: 'openid-connect',
    protocolMapper: 'oidc-audience-mapper',
    config: { 'included.client.audience': name, 'access.token.claim': 'true' },
  })
  const people = {
    clientId: 'people',
    publicClient: true,
    directAccessGrantsEnabled: true,
    protocolMappers: clients
      .map((one) => String(one['clientId']))
      .filter((name) => name !== 'mcp-extauth-stranger')
      .map(audience),
  }
  const identity = { identityProvider: 'elsewhere', userId: ALICE_THERE, userName: 'alice' }
  return {
    enabled: true,
    clients: [crm, people, ...clients],
    identityProviders: [at(cluster), at(spire), at(elsewhere)],
    users: [{ ...ALICE, federatedIdentities: [identity] }],
  }
}
