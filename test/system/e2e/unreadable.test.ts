import { chmod, mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { extauth } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const USER = process.getuid?.() ?? 0
const MODE = 0o000
/** Root may read anything, unless it has no such capability. */
const CAPABILITIES = '-dac_override,-dac_read_search'
const through = USER === 0 ? ['setpriv', `--bounding-set=${CAPABILITIES}`, `--inh-caps=${CAPABILITIES}`] : []

/** A proxy that may not read `strict`. */
async function startAsOther(strict: 'auth.json' | 'secrets') {
  const { directory, remove } = await configFolder({
    'auth.json': authConfig('key', {
      type: 'headerInjection',
      headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
    }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'r', path: '/r', target: 'http://127.0.0.1:9', externalAuthConfigRef: { name: 'key' } }],
    }),
  })
  const secrets = path.join(directory, 'secrets')
  await mkdir(path.join(secrets, 'api'), { recursive: true })
  await writeFile(path.join(secrets, 'api/key'), 'a-value')
  const restricted = path.join(directory, strict)
  await chmod(restricted, MODE)
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  const running = extauth(['proxy', '--config', directory, '--secrets-dir', secrets, ...free], { through })
  sockets.closing({
    async close() {
      running.process.kill('SIGKILL')
      await running.ended
      await chmod(restricted, 0o755)
      await remove()
    },
  })
  return { running, restricted }
}

describe('files of another user', () => {
  it('a configuration: the refusal names path, errno, user, owner and what to do', async () => {
    const { running, restricted } = await startAsOther('auth.json')
    expect(await running.ended).toBe(1)
    expect(running.stderr()).toContain(
      `cannot be read (EACCES): this process is user ${USER}, and ${restricted} belongs to user ${USER} with mode 0000; run it as that user (docker run --user ${USER}:`,
    )
  }, 30_000)

  it('a folder of secrets: a warning at the start names the same, and the folder that is closed', async () => {
    const { running, restricted } = await startAsOther('secrets')
    expect(await running.line('secret is not available')).toMatchObject({
      secret: 'api/key',
      path: restricted,
      errno: 'EACCES',
      user: USER,
      owner: USER,
      mode: '0000',
      remedy: expect.stringContaining(`--user ${USER}:`) as unknown,
    })
  }, 30_000)
})
