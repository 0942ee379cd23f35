import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const KEY_ID = '2026-11-rs256'
const LIFE_SECONDS = 6 * 3600

/** An identity provider that has nothing but keys, and what it issues. */
export interface Issuer {
  readonly url: string
  readonly audience: string
  /** An RS256 access token of about 650 bytes for each caller. */
  tokens(count: number): readonly string[]
  close(): void
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Starts an issuer on a free port of this machine; `more` is what its tokens have beside, or in place of what is usual. */
export async function startIssuer(
  more: { readonly typ?: string; readonly claims?: object; readonly alg?: 'RS256' | 'ES256' } = {},
): Promise<Issuer> {
  // A hundred thousand tokens with RSA would take minutes to sign.
  const { alg = 'RS256' } = more
  const { privateKey, publicKey } =
    alg === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg, use: 'sig' }
  const keys = JSON.stringify({ keys: [key] })
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'application/json').end(keys)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const audience = 'https://mcp.example.com/mcp'
  const issuedAt = Math.floor(Date.now() / 1000)
  const token = (caller: number): string => {
    const sub = `00u${String(caller).padStart(17, '0')}`
    const claims = {
      iss: url,
      aud: audience,
      sub,
      iat: issuedAt,
      exp: issuedAt + LIFE_SECONDS,
      jti: `AT.${sub}`,
      client_id: 'mcp-client',
      scope: 'mcp:read mcp:write',
      ...more.claims,
    }
    const input = `${encode({ alg, typ: more.typ ?? 'at+jwt', kid: KEY_ID })}.${encode(claims)}`
    return `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  return {
    url,
    audience,
    tokens: (count) => Array.from({ length: count }, (_, caller) => token(caller)),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
