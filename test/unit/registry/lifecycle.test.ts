import { Agent, request as httpRequest } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ANONYMOUS, type Caller } from '../../../src/core/index.ts'
import type { AccessPolicy } from '../../../src/registry/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { entry, get, SERVERS, snapshotOf, start, stateOf } from '../../support/registry/setup.ts'

const items = [entry('com.example/a', '1.0.0')]

/** Lets requests wait until the test says so. */
function gate(): { access: AccessPolicy; open: () => void; waiting: Promise<void> } {
  const opened = Promise.withResolvers<Caller>()
  const waiting = Promise.withResolvers<void>()
  return {
    open: () => opened.resolve(ANONYMOUS),
    waiting: waiting.promise,
    access: {
      mode: 'oauth',
      peerOf: () => '',
      realm: 'r',
      resourceMetadata: 'https://x/.well-known/oauth-protected-resource',
      isPublicPath: () => false,
      tokens: {
        authenticate: () => {
          waiting.resolve()
          return opened.promise
        },
      },
    },
  }
}

describe('readiness', () => {
  it.each([
    ['good data', { a: 'good', b: 'good' }, { ok: true, degraded: false }],
    ['old data in one registry', { a: 'good', b: 'old' }, { ok: true, degraded: true }],
    ['no data in one registry', { a: 'good', b: 'none' }, { ok: false }],
  ] as const)('with %s', async (_, kinds, expected) => {
    const snapshot = await snapshotOf(items)
    const states = { good: stateOf(snapshot), old: stateOf(snapshot, 'invalid'), none: stateOf(undefined, 'missing') }
    const registries = new Map(Object.entries(kinds).map(([name, kind]) => [name, states[kind]]))
    const server = await start([], { registries })
    expect(server.readiness()).toMatchObject(expected)
    await server.drain(0)
  })

  it('is degraded while entries are left out, and says how many', async () => {
    const snapshot = await snapshotOf([...items, null])
    const server = await start([], { registries: new Map([['default', stateOf(snapshot)]]) })
    const registries = { default: { entries: 1, skipped: 1 } }
    expect(server.readiness()).toEqual({ ok: true, degraded: true, detail: { registries } })
    await server.drain(0)
  })

  it('names the problem and how much is served, and nothing else', async () => {
    const server = await start([], { registries: new Map([['default', stateOf(await snapshotOf(items), 'not_json')]]) })
    expect(server.readiness().detail).toEqual({ registries: { default: { entries: 1, problem: 'not_json' } } })
    await server.drain(0)
  })
})

describe('draining', () => {
  it('finishes requests in flight, accepts no new ones and is not ready', async () => {
    const { access, open, waiting } = gate()
    const server = await start(items, { access })
    const pending = get(server, SERVERS)
    await waiting
    const drained = server.drain(5_000)
    expect(server.readiness()).toMatchObject({ ok: false, detail: { draining: true } })
    await expect(get(server, SERVERS)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    open()
    expect((await pending).status).toBe(200)
    await drained
  })

  it('ends idle connections at once, also those that become idle meanwhile', async () => {
    const { access, open, waiting } = gate()
    const server = await start(items, { access })
    const agent = new Agent({ keepAlive: true })
    const pending = new Promise<number | undefined>((resolve) => {
      httpRequest(`${server.url}${SERVERS}`, { agent }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode))
      }).end()
    })
    await waiting
    const before = performance.now()
    const drained = server.drain(10_000)
    open()
    expect(await pending).toBe(200)
    await drained
    expect(performance.now() - before).toBeLessThan(3_000)
    agent.destroy()
  })

  it('does not wait for a connection that never asked for anything', async () => {
    const server = await start(items)
    const silent = rawConnect(server.url, '')
    await new Promise((resolve) => silent.socket.once('connect', resolve))
    await get(server, SERVERS)
    const before = performance.now()
    await server.drain(60_000)
    expect(performance.now() - before).toBeLessThan(10_000)
    await silent.ended
  })

  it('gives up on an answer that outlasts the grace', async () => {
    const { access, waiting } = gate()
    const server = await start(items, { access })
    const pending = get(server, SERVERS)
    await waiting
    await Promise.all([expect(pending).rejects.toMatchObject({ code: 'ECONNRESET' }), server.drain(50)])
  })
})

describe('startRegistry', () => {
  it('refuses an address that is taken or none', async () => {
    const server = await start(items)
    await expect(start(items, { address: new URL(server.url).host })).rejects.toMatchObject({
      code: 'config_error',
      cause: { code: 'EADDRINUSE' },
    })
    await expect(start(items, { address: 'nowhere' })).rejects.toMatchObject({ code: 'config_error' })
    await server.drain(0)
  })

  it('listens on a Unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'registry-'))
    const socketPath = join(directory, 's.sock')
    const server = await start(items, { address: `unix:${socketPath}` })
    expect(server.url).toBe(`unix:${socketPath}`)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      httpRequest({ socketPath, path: SERVERS }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(200)
    await server.drain(0)
    rmSync(directory, { recursive: true })
  })

  it('serves the discovery document at the root and behind the path of the resource', async () => {
    const document = { resource: 'https://registry.example.com/v1' }
    const server = await start(items, {
      documentsFor: () =>
        new Map([
          ['/.well-known/oauth-protected-resource', document],
          ['/.well-known/oauth-protected-resource/v1', document],
        ]),
    })
    for (const path of ['', '/v1', '?x=y']) {
      const got = await get(server, `/.well-known/oauth-protected-resource${path}`)
      expect([got.status, got.json]).toEqual([200, document])
    }
    for (const path of ['/v2', '/v1/', 's'])
      expect((await get(server, `/.well-known/oauth-protected-resource${path}`)).status).toBe(404)
    await server.drain(0)
  })
})

describe('a client that does not send its headers in time', () => {
  it('gets 408 and a closed connection, without effect on others', async () => {
    const server = await start(items, { headersTimeoutMs: 100 })
    const slow = rawConnect(server.url, `GET ${SERVERS} HTTP/1.1\r\nHost: x\r\n`)
    await slow.ended
    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n.*"error":/s)
    expect((await get(server, SERVERS)).status).toBe(200)
    await server.drain(0)
  })
})
