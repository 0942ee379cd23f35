import { afterEach, describe, expect, it } from 'vitest'
import { monotonicOf } from '../../support/ports.ts'
import type { Metrics } from '../../../src/core/index.ts'
import { createOutbound, createProtections } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

function open(clock = { now: () => 1_000_000 }) {
  const states: string[] = []
  const metrics: Metrics = {
    counter: () => ({ with: () => ({ add: () => undefined }) }),
    gauge: () => ({
      with: (name) => ({ set: (value) => void states.push(`${name} ${value}`), add: () => undefined }),
    }),
    histogram: () => ({ with: () => ({ observe: () => undefined }) }),
  }
  const protections = createProtections({ clock, monotonicClock: monotonicOf(clock), metrics })
  const client = (name: string, service: string | undefined, maxConcurrent = 64) => {
    const named = service === undefined ? {} : { service }
    return sockets.closing(createOutbound({ name, ...named, protections, clock, metrics, maxConcurrent, maxQueued: 0 }))
  }
  return { client, states }
}

/** Breaks the circuit of a client's service. */
async function breakCircuit(client: ReturnType<typeof createOutbound>, url: string): Promise<void> {
  for (let request = 0; request < 20; request++) await client.request({ method: 'GET', url })
}
const kindOf = (request: Promise<unknown>): Promise<unknown> =>
  request.then(
    () => 'answered',
    ({ kind }: { kind: unknown }) => kind,
  )

describe('clients of one service', () => {
  it('have one breaker, whatever their names, and the gauge says so under each', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(500).end())
    const { client, states } = open()
    const [one, two, other, own] = [
      client('one', url),
      client('two', url),
      client('other', 'x'),
      client('own', undefined),
    ]
    await breakCircuit(one, url)
    expect(await kindOf(two.request({ method: 'GET', url }))).toBe('breaker_open')
    expect(await kindOf(other.request({ method: 'GET', url }))).toBe('answered')
    expect(await kindOf(own.request({ method: 'GET', url }))).toBe('answered')
    expect(states.slice(-2)).toEqual(['one 1', 'two 1'])
  })

  it('have one concurrency bound', async () => {
    const asked = Promise.withResolvers<() => void>()
    const url = await sockets.http((_request, response) => asked.resolve(() => response.end()))
    const { client } = open()
    const [one, two] = [client('one', url, 1), client('two', url, 1)]
    const first = kindOf(one.request({ method: 'GET', url }))
    expect(await kindOf(two.request({ method: 'GET', url }))).toBe('overloaded')
    const finish = await asked.promise
    finish()
    expect(await first).toBe('answered')
  })

  it('keep an open circuit over a reload, where the new client comes before the old one goes', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(500).end())
    const { client, states } = open()
    const old = client('one', url)
    await breakCircuit(old, url)
    const next = client('one', url)
    await old.close()
    await old.close()
    expect(await kindOf(next.request({ method: 'GET', url }))).toBe('breaker_open')
    expect(states.at(-1)).toBe('one 1')
    await next.close()
    expect(states.at(-1)).toBe('one 0')
    expect(await kindOf(client('one', url).request({ method: 'GET', url }))).toBe('answered')
  })

  it('show the worst where two services have the same name', async () => {
    const url = await sockets.http((_request, response) => response.writeHead(500).end())
    const { client, states } = open()
    const [one, healthy] = [client('same', url), client('same', 'healthy')]
    await breakCircuit(one, url)
    await healthy.close()
    expect(states.at(-1)).toBe('same 1')
  })
})
