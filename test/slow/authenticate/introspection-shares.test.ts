import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { networked } from '../../support/authenticate/network.ts'
import { AUDIENCE, bearer } from '../../support/authenticate/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const BALANCER = '203.0.113.1'
const SOON = { timeout: 10_000, interval: 10 }
const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
const all = (count: number, code: string | number): string[] => range(count).map(() => String(code))

/** An introspection endpoint that takes `delayMs`, knows tokens that begin with good, and says nothing to hanging ones. */
async function provided(delayMs: number) {
  let nowMs = Date.now()
  const asked: string[] = []
  const listener: RequestListener = (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const token = new URLSearchParams(body).get('token') ?? ''
      asked.push(token)
      if (token.startsWith('hanging')) return
      const active = token.startsWith('good')
      const exp = Math.floor(nowMs / 1000) + 3600
      setTimeout(
        () => response.end(JSON.stringify(active ? { active, sub: token, aud: AUDIENCE, exp } : { active })),
        delayMs,
      )
    })
  }
  const origin = await sockets.http(listener)
  const entry = { name: 'idp', issuerUrl: origin, audience: AUDIENCE, introspectionUrl: `${origin}/introspect` }
  const clock = { ...createManualClock(), now: () => nowMs }
  const authenticator = sockets.closing(networked([entry], { clock }))
  const ask = async (token: string, peer: string): Promise<string> => {
    try {
      await authenticator.authenticate(bearer(token), '', peer)
      return '200'
    } catch (error) {
      return String(asFailure(error).status)
    }
  }
  return { asked, ask, advance: (ms: number) => (nowMs += ms) }
}

describe('good callers, all at once,', () => {
  it('are served though 200 of them are behind one address', async () => {
    const { ask } = await provided(100)
    expect(await Promise.all(range(200).map((index) => ask(`good-${index}`, BALANCER)))).toEqual(all(200, 200))
  })

  it('are served though each has an address of its own', async () => {
    const { ask } = await provided(100)
    const peerOf = (index: number) => `2001:db8:0:${index.toString(16)}::1`
    expect(await Promise.all(range(200).map((index) => ask(`good-${index}`, peerOf(index))))).toEqual(all(200, 200))
  })

  it.each<[string, string]>([
    ['elsewhere', '198.51.100.7'],
    ['at the same address', BALANCER],
  ])('are served while another client %s sends invalid tokens', async (_where, peer) => {
    const { ask, asked } = await provided(20)
    const made: Promise<string>[] = []
    const invent = (): void => {
      for (const index of range(60)) made.push(ask(`invented-${made.length}-${index}`, peer))
    }
    const served: string[] = []
    for (const round of range(5)) {
      invent()
      const goods = range(40).map((index) => ask(`good-${round}-${index}`, BALANCER))
      invent()
      served.push(...(await Promise.all(goods)))
    }
    expect(served).toEqual(all(200, 200))
    expect(new Set(await Promise.all(made))).toEqual(new Set(['401']))
    expect(asked.filter((token) => token.startsWith('invented'))).toHaveLength(600)
  })
})

describe('a flood that the provider is slow about', () => {
  it('does not stop tokens that were good a minute ago, whose results have ended', async () => {
    const { ask, asked, advance } = await provided(5)
    const goods = range(60).map((index) => `good-${index}`)
    expect(await Promise.all(goods.map((token) => ask(token, BALANCER)))).toEqual(all(60, 200))
    advance(60_000)
    const flood = range(1500).map((index) => ask(`hanging-${index}`, BALANCER))
    await vi.waitFor(() => expect(asked).toContain('hanging-0'), SOON)
    expect(await Promise.all(goods.map((token) => ask(token, BALANCER)))).toEqual(all(60, 200))
    // A token never seen waits like the others.
    expect(await ask('good-new', BALANCER)).toBe('503')
    expect(new Set(await Promise.all(flood))).toEqual(new Set(['503']))
  }, 20_000)

  it('counts the addresses of one IPv6 network as one', async () => {
    const { ask, asked } = await provided(5)
    const flood = range(200).map((index) => ask(`hanging-${index}`, `2001:db8::${index.toString(16)}`))
    const hanging = () => asked.filter((token) => token.startsWith('hanging'))
    await vi.waitFor(() => expect(hanging()).toHaveLength(64), SOON)
    expect(await ask('good', '2001:db8:0:1::1')).toBe('200')
    expect(hanging()).toHaveLength(64)
    await sockets.closeAll()
    await Promise.all(flood)
  }, 20_000)
})
