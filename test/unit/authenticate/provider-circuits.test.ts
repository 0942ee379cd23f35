import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { rsaKey, signed } from '../../support/authenticate/keys.ts'
import { keysListener, networked } from '../../support/authenticate/network.ts'
import { AUDIENCE, bearer } from '../../support/authenticate/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const key = await rsaKey({ kid: 'one' })
const serveKeys = keysListener([key])

/** A provider whose introspection endpoint responds according to the token's prefix; hanging requests wait for `answer`. */
async function provided(deadlineMs = 60_000) {
  const asked: string[] = []
  const { promise: released, resolve: answer } = Promise.withResolvers<void>()
  const listener: RequestListener = (request, response) => {
    if (request.url === '/jwks') {
      serveKeys(request, response)
      return
    }
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const token = new URLSearchParams(body).get('token') ?? ''
      asked.push(token)
      const good = (): void => {
        const exp = Math.floor(Date.now() / 1000) + 600
        response.end(JSON.stringify({ active: true, sub: token, aud: AUDIENCE, exp }))
      }
      if (token.startsWith('broken')) response.writeHead(500).end()
      else if (token.startsWith('busy')) response.writeHead(503).end()
      else if (token.startsWith('hanging')) void released.then(good)
      else good()
    })
  }
  const origin = await sockets.http(listener)
  const entry = {
    name: 'idp',
    issuerUrl: origin,
    audience: AUDIENCE,
    jwksUrl: `${origin}/jwks`,
    introspectionUrl: `${origin}/introspect`,
  }
  const authenticator = sockets.closing(networked([entry], { deadlineMs }))
  const ask = async (token: string, peer: string): Promise<string> => {
    try {
      const caller = await authenticator.authenticate(bearer(token), '', peer)
      return caller.kind === 'authenticated' ? caller.subject : caller.kind
    } catch (error) {
      return asFailure(error).code
    }
  }
  return { asked, ask, origin, answer }
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
const STRANGER = '203.0.113.9'
const FRIEND = '198.51.100.7'

describe('a stranger whose tokens', () => {
  it('make introspection fail opens no circuit for others, and none for the keys', async () => {
    const { ask, asked, origin } = await provided()
    for (const index of range(40)) await ask(`broken-${index}`, STRANGER)
    expect(asked).toHaveLength(40)
    // It may be the address of a load balancer, behind which others stand.
    expect(await ask('other', STRANGER)).toBe('other')
    expect(await ask('alice', FRIEND)).toBe('alice')
    const claims = { iss: origin, aud: AUDIENCE, sub: 'bob', exp: Math.floor(Date.now() / 1000) + 600 }
    const jwt = await signed(key, { alg: 'RS256', kid: 'one' }, claims)
    expect(await ask(jwt, STRANGER)).toBe('bob')
  })

  it('make introspection hang delays no other caller', async () => {
    const { ask, asked, answer } = await provided()
    const hanging = range(100).map((index) => ask(`hanging-${index}`, STRANGER))
    const others = range(100).map((index) => `good-${index}`)
    expect(await Promise.all(others.map((token) => ask(token, FRIEND)))).toEqual(others)
    // The rest wait for a place, and have theirs when the provider is well again.
    expect(asked.filter((token) => token.startsWith('hanging'))).toHaveLength(64)
    answer()
    expect(await Promise.all(hanging)).toEqual(range(100).map((index) => `hanging-${index}`))
  })

  it('make introspection hang hears that there is no answer', async () => {
    const { ask } = await provided(200)
    expect(await ask('hanging', STRANGER)).toBe('identity_provider_unavailable')
  })
})

it('a provider that answers 503 is asked twenty times and then once a second, though all tokens are behind one address', async () => {
  const { ask, asked } = await provided()
  for (const index of range(60)) expect(await ask(`busy-${index}`, FRIEND)).toBe('identity_provider_unavailable')
  expect(asked.length).toBeLessThanOrEqual(25)
})

it('a token that made introspection fail is not asked about again for five seconds, wherever it comes from', async () => {
  const { ask, asked } = await provided()
  expect(await ask('broken', STRANGER)).toBe('identity_provider_unavailable')
  expect(await ask('broken', FRIEND)).toBe('identity_provider_unavailable')
  expect(asked).toHaveLength(1)
})
