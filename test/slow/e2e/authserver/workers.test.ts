import { Agent, fetch as undiciFetch } from 'undici'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { runWorkersProcess } from '../../../support/e2e/workers.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'
import { Application, call, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'

const sockets = createSockets()
const connections = new Agent({ pipelining: 0 })
beforeEach(() => {
  // Every request on a connection of its own: with several workers, each goes to the next one.
  const send = (url: string | URL, init?: object) => undiciFetch(url, { ...init, dispatcher: connections })
  vi.stubGlobal('fetch', send)
})
afterEach(async () => {
  vi.unstubAllGlobals()
  await sockets.closeAll()
})

describe('an authorization server at several workers, with storage in memory and keys of its own making', () => {
  it('logs the official client in, whichever worker gets which step', async () => {
    const world = await openWorld(sockets, {
      spec: { hmacSecretRefs: undefined },
      start: (files, listen) => runWorkersProcess(sockets, files, { workers: 3, listen }),
    })
    const keys = async (): Promise<unknown> => (await fetch(`${world.url}/.well-known/jwks.json`)).json()
    const published = [await keys(), await keys(), await keys()]
    expect(published[0]).toMatchObject({ keys: [{ kty: 'EC' }] })
    expect(published[1]).toEqual(published[0])
    expect(published[2]).toEqual(published[0])
    const application = new Application()
    const client = await logIn(world, `${world.url}/inject`, application, LEGACY)
    for (let round = 0; round < 3; round += 1) expect(await call(client)).toContain('tools/call')
    await client.close()
    const tokens = world.backend.requests('/open').map(({ headers }) => headers[headers.indexOf('authorization') + 1])
    expect(new Set(tokens).size).toBe(1)
  }, 120_000)
})
