import { afterEach, expect, it } from 'vitest'
import { postForm } from '../../authserver/rig.ts'
import { createSockets } from '../../support/sockets.ts'
import { INITIALIZE, post } from '../lab.ts'
import { extauth } from '../process.ts'
import { configFolder } from '../run.ts'
import { Application, LEGACY, logIn } from './application.ts'
import { newSigningKey } from './fleet.ts'
import { openWorld, type StartedProxy } from './world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A process on one address, which can be started again with the same files. */
function createProcess() {
  let begin = async (): Promise<{ readonly admin: string }> => Promise.reject(new Error('not started'))
  let end = async (): Promise<void> => undefined
  const start = async (files: Readonly<Record<string, string | Buffer>>, listen: string): Promise<StartedProxy> => {
    const { directory, write, remove } = await configFolder(files)
    begin = async () => {
      const where = ['--config', directory, '--secrets-dir', `${directory}/secrets`, '--listen', listen]
      const running = extauth(['proxy', ...where, '--admin', '127.0.0.1:0'])
      end = async () => {
        running.process.kill('SIGKILL')
        await running.ended
      }
      return (await running.line('listening')) as { admin: string }
    }
    const { admin: adminUrl } = await begin()
    const close = async (): Promise<void> => {
      await end()
      await remove()
    }
    return { url: `http://${listen}`, adminUrl, write, close, reload: () => Promise.reject(new Error('not here')) }
  }
  return { start, restart: async () => (await end(), await begin()) }
}

it('a token whose session is in memory is good until a restart, and a revoked one is not good again after it', async () => {
  const program = createProcess()
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
