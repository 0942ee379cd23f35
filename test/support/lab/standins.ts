import { Secret } from '../../../src/core/index.ts'
import { type LabClient, type LabRole, startLabIdentityProvider, startLabSts } from '../../../lab/index.ts'

/** A clock that stands until it is moved, in milliseconds since the epoch. */
export const movableClock = () => {
  let at = Date.parse('2026-11-21T12:00:00Z')
  return { now: () => at, advance: (ms: number) => void (at += ms) }
}

export const CLIENTS: readonly LabClient[] = [
  {
    id: 'exchanger',
    secret: new Secret('exchange+secret:1'),
    may: ['exchange'],
    audiences: ['backend', 'https://backend.example'],
  },
  { id: 'introspector', secret: new Secret('introspect'), may: ['introspect'] },
  { id: 'service', secret: new Secret('service'), may: ['client_credentials'], audiences: ['extauth-lab'] },
]

export const ROLES: readonly LabRole[] = [
  {
    arn: 'arn:cloud:iam::000000000000:role/path/admin',
    audiences: ['extauth-lab'],
    groups: ['admins'],
    maxSessionSeconds: 7200,
  },
  { arn: 'arn:cloud:iam::000000000000:role/reader', audiences: ['extauth-lab'] },
  { arn: 'arn:cloud:iam::000000000000:role/other', audiences: ['other-audience'] },
]

/** An identity provider with the clients above, on a free port. */
export const startProvider = (clock = movableClock()) => startLabIdentityProvider({ port: 0, clients: CLIENTS, clock })

/** An STS that trusts the provider, on a free port. */
export const startSts = (identity: Awaited<ReturnType<typeof startProvider>>, clock: ReturnType<typeof movableClock>) =>
  startLabSts({
    port: 0,
    clock,
    faults: identity.faults,
    trust: { issuer: identity.url, keys: identity.jwks, roles: ROLES },
  })

/** `Authorization: Basic` of RFC 6749 §2.3.1. */
export const basic = (id: string, secret: string) =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`

/** Posts a form and reads the JSON answer. */
export async function postForm(
  url: string,
  form: Record<string, string> | [string, string][],
  authorization?: string,
): Promise<{ status: number; headers: Headers; json: Record<string, unknown> }> {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams(form),
    headers: authorization === undefined ? {} : { authorization },
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  const json = (isJson ? JSON.parse(text) : { text }) as Record<string, unknown>
  return { status: response.status, headers: response.headers, json }
}

/** Posts JSON and reads the JSON answer. */
export async function postJson(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}
