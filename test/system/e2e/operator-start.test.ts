import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { kubeconfig, startApiServer } from '../../support/e2e/api-server.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const POD = {
  metadata: { name: 'me' },
  spec: { containers: [{ name: 'operator', image: 'registry.example.com/a:1' }] },
}
const FORBIDDEN = { kind: 'Status', reason: 'Forbidden', code: 403, message: 'pods "me" is forbidden' }

it('extauth operator waits for an API server that gives no answer, or not yet its own pod: healthy and not ready', async () => {
  let state: 'away' | 'forbidden' | 'there' = 'away'
  const server = await startApiServer(sockets, {}, (request, response) => {
    if (state === 'away') request.socket.destroy()
    else if (request.url?.includes('/pods/me') !== true) return false
    else if (state === 'forbidden') response.writeHead(403).end(JSON.stringify(FORBIDDEN))
    else response.end(JSON.stringify(POD))
    return true
  })
  const where = ['--kubeconfig', '{dir}/kubeconfig', '--namespace', 'n', '--operator-namespace', 'n']
  const rest = ['--pod-name', 'me', '--webhook-address', 'off', '--admin', '127.0.0.1:0', '--log-format', 'json']
  const files = { kubeconfig: kubeconfig(server.url) }
  const running = await startWith(sockets, files, ['operator', ...where, ...rest])
  const { admin } = (await running.line('listening')) as { admin: string }
  const look = async () => {
    const [health, readiness] = await Promise.all([fetch(`${admin}/health`), fetch(`${admin}/readiness`)])
    const { detail } = (await readiness.json()) as { detail: { waitsFor?: string } }
    return [health.status, readiness.status, detail.waitsFor]
  }
  const wait = { timeout: 60_000, interval: 50 }
  await expect.poll(look, wait).toEqual([200, 503, 'the image: no answer from the API server'])
  state = 'forbidden'
  await expect.poll(look, wait).toEqual([200, 503, 'the image: 403 Forbidden'])
  state = 'there'
  await expect.poll(look, wait).toEqual([200, 200, undefined])
  expect(running.stderr()).not.toContain('"stopping"')
}, 90_000)

it('extauth operator that still waits stops at once', async () => {
  const server = await startApiServer(sockets, {}, (request) => {
    request.socket.destroy()
    return true
  })
  const where = ['--kubeconfig', '{dir}/kubeconfig', '--namespace', 'n', '--operator-namespace', 'n']
  const rest = ['--pod-name', 'me', '--webhook-address', 'off', '--admin', '127.0.0.1:0', '--log-format', 'json']
  const running = await startWith(sockets, { kubeconfig: kubeconfig(server.url) }, ['operator', ...where, ...rest])
  await running.line('cannot read from the API server, retrying')
  running.process.kill('SIGTERM')
  expect(await running.ended).toBe(0)
}, 90_000)
