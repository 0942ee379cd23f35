import { afterEach, describe, expect, it, vi } from 'vitest'
import type { RequestObserver, RequestTrace } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, headerCredential, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Records the calls of an observer, in order. */
function record() {
  const events: [string, ...unknown[]][] = []
  const trace: RequestTrace = {
    dropped: (name, rule) => events.push(['dropped', name, rule]),
    matched: ({ route, backendPath }) => events.push(['matched', route.name, backendPath]),
    known: ({ caller }) => events.push(['known', caller.kind === 'authenticated' ? caller.subject : '']),
    attempt: ({ number }, lookup) => events.push(['attempt', number, lookup]),
    armed: ({ credential }) => events.push(['armed', credential.kind]),
    sealed: ({ method, path, headers }) => events.push(['sealed', method, path, headers]),
    sending: () => events.push(['sending']),
    received: (status, headers) => events.push(['received', status, headers['x-from']]),
    again: ({ reason }) => events.push(['again', reason]),
    responded: (status, headers) => events.push(['responded', status, headers]),
    body: (chunk) => events.push(['body', chunk.toString()]),
    finished: ({ status, reason }) => events.push(['finished', status, reason]),
  }
  const observer: RequestObserver = {
    arrived(inbound) {
      events.push(['arrived', inbound.id, inbound.request.url])
      return inbound.request.url === '/unseen' ? undefined : trace
    },
  }
  const names = () => events.map(([name]) => name)
  const of = (name: string) => events.find((event) => event[0] === name)
  return { observer, events, names, of }
}

async function start(options: RouteOptions = {}, statuses: number[] = []) {
  const origin = await sockets.http((_, response) => {
    response.writeHead(statuses.shift() ?? 200, { 'x-from': 'backend', 'content-length': '2' }).end('ok')
  })
  const seen = record()
  const route = createRoute(sockets, origin, { ownedHeaders: ['x-api-key'], ...options })
  const proxy = await startProxy(sockets, runtimeOf([route]), {}, { observer: seen.observer })
  return { proxy, ...seen }
}

describe('an observer', () => {
  it('sees a request from its arrival to its end', async () => {
    const { proxy, events, names, of } = await start({
      caller: () => createCaller({ subject: 'alice' }),
      credential: () => headerCredential('x-api-key', 'value'),
    })
    const headers = { authorization: 'Bearer t', 'x-api-key': 'theirs' }
    await (await fetch(`${proxy.url}/a?b`, { method: 'POST', body: '{}', headers })).text()
    await vi.waitFor(() => expect(names()).toContain('finished'))
    expect(names().filter((name) => name !== 'dropped')).toEqual(
      'arrived matched known attempt armed sealed sending received responded body finished'.split(' '),
    )
    expect(events).toContainEqual(['dropped', 'authorization', 'caller_credential'])
    expect(events).toContainEqual(['dropped', 'x-api-key', 'set_by_route'])
    expect(of('attempt')).toEqual(['attempt', 1, { from: 'config' }])
    const [, method, path, sent] = of('sealed') ?? []
    expect([method, path]).toEqual(['POST', '/a?b'])
    expect(sent).toEqual(expect.arrayContaining(['x-api-key', 'value', 'content-length', '2']))
    expect(of('received')).toEqual(['received', 200, 'backend'])
    expect(of('responded')?.[2]).toEqual(expect.arrayContaining(['x-from', 'backend', 'x-request-id', 'request-1']))
    expect(of('body')).toEqual(['body', 'ok'])
    expect(of('finished')).toEqual(['finished', 200, ''])
  })

  it('sees each try and why there was another', async () => {
    const { proxy, names, events } = await start({ reject: () => true }, [401, 200])
    await (await fetch(proxy.url)).text()
    await vi.waitFor(() => expect(names()).toContain('finished'))
    expect(names().slice(names().indexOf('attempt'))).toEqual(
      'attempt armed sealed sending received again attempt armed sealed sending received responded body finished'.split(
        ' ',
      ),
    )
    expect(events).toContainEqual(['again', 'credential_rejected'])
  })

  it('sees what we answer ourselves', async () => {
    const { proxy, names, of } = await start({ path: '/only' })
    await (await fetch(`${proxy.url}/other`)).text()
    await vi.waitFor(() => expect(names()).toContain('finished'))
    expect(names()).toEqual(['arrived', 'responded', 'body', 'finished'])
    expect(of('responded')?.[1]).toBe(404)
    expect(of('body')?.[1]).toContain('not_found')
    expect(of('finished')).toEqual(['finished', 404, 'not_found'])
  })

  it('may leave a request alone', async () => {
    const { proxy, names } = await start()
    await (await fetch(`${proxy.url}/unseen`)).text()
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(1))
    expect(names()).toEqual(['arrived'])
  })
})
