import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const BACKENDS = 60
/** Half of what is left when 64 descriptors are kept for other things. */
const DESCRIPTORS = 128
const MOST = 32

let running: Running | undefined
const server = createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'))
})
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  server.closeAllConnections()
  server.close()
})

it('connections to all backends together stay below the file descriptor limit, and no request fails', async () => {
  let [open, most] = [0, 0]
  server.on('connection', (socket) => {
    most = Math.max(most, ++open)
    socket.once('close', () => open--)
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  const { port } = server.address() as AddressInfo
  const routes = Array.from({ length: BACKENDS }, (_, index) => ({
    name: `r${index}`,
    path: `/r${index}`,
    target: `http://127.0.0.${index + 2}:${port}/mcp`,
    externalAuthConfigRef: { name: 'none' },
  }))
  const folder = await configFolder({
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes }),
  })
  try {
    const args = ['proxy', '--config', folder.directory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
    running = extauth(args, { through: ['bash', '-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'bash'] })
    const { url } = (await running.line('listening')) as { url: string }
    const statuses: number[] = []
    for (const { path } of routes) statuses.push((await post(url + path, INITIALIZE)).status)
    expect(statuses).toEqual(routes.map(() => 200))
    // Each is kept after its answer, so that without a bound there would be one for each backend. A connection closed for another may
    // end here a moment after the next has come.
    expect(most).toBeLessThanOrEqual(MOST + 4)
  } finally {
    await folder.remove()
  }
})
