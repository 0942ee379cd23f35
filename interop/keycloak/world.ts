import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { type Authority, createAuthority, type Pair } from './certificates.ts'
import { type StandIn, startStandIn } from './stand-in.ts'

/** Everything around Keycloak and the proxy: an authority, keys, certificates, another issuer, and where secrets are. */
export interface World {
  readonly directory: string
  readonly authority: Authority
  readonly standIn: StandIn & { serves(realm: string): void }
  /** `key` and `tls` are those that Keycloak knows; `other` it does not; `foreign` is of an untrusted CA. */
  readonly pairs: Readonly<Record<'key' | 'tls' | 'other' | 'foreign', Pair>>
  /** Public keys of the client that has several. */
  readonly jwks: { readonly keys: readonly JWK[] }
  /** Writes the secret keycloak/KEY. */
  readonly secret: (key: string, value: string | Buffer) => void
  close(): Promise<void>
}

/** Signature algorithms besides RSA with SHA-256. */
export const ALGORITHMS = ['ES256', 'EdDSA', 'PS256'] as const

export async function createWorld(): Promise<World> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-company-'))
  const secrets = path.join(directory, 'secrets', 'keycloak')
  mkdirSync(secrets, { recursive: true })
  const secret = (key: string, value: string | Buffer) => writeFileSync(path.join(secrets, key), value, { mode: 0o600 })
  const authority = createAuthority(directory, 'company')
  const strangers = createAuthority(directory, 'strangers')
  const standIn = await startStandIn(authority)
  const pairs = {
    key: authority.issue('key', { subject: '/CN=assertions' }),
    tls: authority.issue('tls', { subject: '/CN=mcp-extauth' }),
    other: authority.issue('other', { subject: '/CN=other' }),
    foreign: strangers.issue('foreign', { subject: '/CN=mcp-extauth' }),
  }
  for (const [name, pair] of Object.entries(pairs)) {
    secret(`${name}.key`, readFileSync(pair.key))
    secret(`${name}.crt`, readFileSync(pair.certificate))
  }
  const keys: JWK[] = []
  for (const alg of ALGORITHMS) {
    const made = await generateKeyPair(alg, { extractable: true })
    keys.push({ ...(await exportJWK(made.publicKey)), kid: alg, alg, use: 'sig' })
    secret(`${alg}.jwk`, JSON.stringify({ ...(await exportJWK(made.privateKey)), kid: alg, alg }))
  }
  const close = async () => {
    await standIn.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return { directory, authority, standIn, pairs, jwks: { keys }, secret, close }
}
