import { afterEach, expect, it } from 'vitest'
import { postForm } from '../../../support/authserver/rig.ts'
import { createSockets } from '../../../support/sockets.ts'
import { INITIALIZE, post } from '../../../support/e2e/lab.ts'
import { Application, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { newSigningKey } from '../../../support/e2e/authserver/fleet.ts'
import { createProgram } from '../../../support/e2e/authserver/program.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it('a token whose session is in memory is good until a restart, and a revoked one is not good again after it', async () => {
  const program = createProgram()
  const world = await openWorld(sockets, {
    start: program.start,
    spec: { signingKeySecretRefs: [{ name: 'as', key: 'signing' }] },
    files: () => ({ 'secrets/as/signing': newSigningKey() }),
  })
  const login = async (): Promise<Application> => {
    const application = new Application()
    await (await logIn(world, `${world.url}/mcp`, application, LEGACY)).close()
    return application
  }
  const status = async (application: Application): Promise<number> => {
    const authorization = `Bearer ${application.kept?.access_token ?? ''}`
    return (await post(`${world.url}/mcp`, INITIALIZE, { authorization })).status
  }
  const [revoked, other] = [await login(), await login()]
  const form = { client_id: revoked.client?.client_id ?? '', token: revoked.kept?.refresh_token ?? '' }
  expect((await postForm(`${world.url}/oauth/revoke`, form)).status).toBe(200)
  expect([await status(revoked), await status(other)]).toEqual([401, 200])

  await program.restart()
  expect([await status(revoked), await status(other)]).toEqual([401, 401])
  expect(await status(await login())).toBe(200)
}, 60_000)

it('GET streams of a session end within 2 s of its revocation; those of others stay', async () => {
  const program = createProgram()
  const world = await openWorld(sockets, { start: program.start })
  const login = async (): Promise<Application> => {
    const application = new Application()
    await (await logIn(world, `${world.url}/mcp`, application, LEGACY)).close()
    return application
  }
  const openStream = async (application: Application) => {
    const authorization = `Bearer ${application.kept?.access_token ?? ''}`
    const begun = await post(`${world.url}/mcp`, INITIALIZE, { authorization })
    await begun.text()
    const session = begun.headers.get('mcp-session-id') ?? ''
    const response = await fetch(`${world.url}/mcp`, {
      headers: { authorization, accept: 'text/event-stream', 'mcp-session-id': session },
    })
    expect(response.status).toBe(200)
    return response
  }
  const [revoked, other] = [await login(), await login()]
  const [ending, staying] = [await openStream(revoked), await openStream(other)]
  const form = { client_id: revoked.client?.client_id ?? '', token: revoked.kept?.refresh_token ?? '' }
  const startedAt = performance.now()
  expect((await postForm(`${world.url}/oauth/revoke`, form)).status).toBe(200)
  await ending.text()
  expect(performance.now() - startedAt).toBeLessThan(2_000)
  const still = Promise.withResolvers<string>()
  setTimeout(() => still.resolve('open'), 1_000)
  expect(await Promise.race([staying.text(), still.promise])).toBe('open')
}, 60_000)
