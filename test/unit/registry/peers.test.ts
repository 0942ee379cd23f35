import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runRegistryServer, type RunningRegistry } from '../../../src/compose/registry/run-registry.ts'
import { meanwhile } from '../../support/meanwhile.ts'
import { createSockets } from '../../support/sockets.ts'
import { entry, get, SERVERS, SILENT } from '../../support/registry/setup.ts'

/** Concurrent calls to an introspection endpoint; one peer may use all free ones. */
const PLACES = 64

const sockets = createSockets()
let directory: string
let registry: RunningRegistry | undefined
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-peers-'))
})
afterEach(async () => {
  await registry?.close()
  registry = undefined
  await sockets.closeAll()
  rmSync(directory, { recursive: true })
})

/** A registry that believes these, and the introspections that wait for their answers. */
async function started(trustedProxies: readonly string[]) {
  const waiting: { readonly token: string; readonly response: ServerResponse }[] = []
  const introspectionUrl = await sockets.http((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => waiting.push({ token: new URLSearchParams(body).get('token') ?? '', response }))
  })
  const provider = { name: 'idp', issuerUrl: 'http://127.0.0.1:1', audience: 'a', introspectionUrl }
  const configPath = path.join(directory, 'registry.json')
  writeFileSync(path.join(directory, 'data.json'), JSON.stringify([entry('com.example/a', '1')]))
  writeFileSync(
    configPath,
    JSON.stringify({
      auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider] } },
      trustedProxies,
      registries: [{ name: 'default', source: { file: './data.json' } }],
    }),
  )
  const free = '127.0.0.1:0'
  const options = { configPath, address: free, internalAddress: free, env: {}, drainGraceMs: 0, log: SILENT }
  const running = (registry = await runRegistryServer(options))
  const ask = async (token: string, client: string): Promise<number> =>
    (await get(running, SERVERS, { headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': client } })).status
  const answerAll = (): void => {
    for (const { response } of waiting.splice(0))
      response.end(JSON.stringify({ active: true, aud: 'a', sub: 's', exp: Date.now() / 1000 + 60 }))
  }
  return { waiting, ask, answerAll }
}

describe('a registry behind a load balancer', () => {
  it.each<[string, readonly string[], boolean]>([
    ['that is trusted distinguishes its clients', ['127.0.0.0/8'], true],
    ['that is not trusted takes it for one client', [], false],
  ])('%s', async (_name, trustedProxies, isServed) => {
    const { waiting, ask, answerAll } = await started(trustedProxies)
    const greedy = Array.from({ length: PLACES + 10 }, (_, index) => ask(`greedy-${index}`, '203.0.113.1'))
    await vi.waitFor(() => expect(waiting).toHaveLength(PLACES), 10_000)
    const other = ask('other', '203.0.113.2')
    const isAsked = () => waiting.some(({ token }) => token === 'other')
    if (isServed) await vi.waitFor(() => expect(isAsked()).toBe(true), 10_000)
    else {
      // Time for it to come, if it could.
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(isAsked()).toBe(false)
    }
    expect(new Set(await meanwhile(10, answerAll, [...greedy, other]))).toEqual(new Set([200]))
  })
})
