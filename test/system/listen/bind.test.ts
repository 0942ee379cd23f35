import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { bind, parseListenAddress } from '../../../src/listen/index.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('bind', () => {
  it.each([
    ['127.0.0.1:0', /^http:\/\/127\.0\.0\.1:[1-9]\d*$/],
    ['[::1]:0', /^http:\/\/\[::1\]:[1-9]\d*$/],
    [':0', /^http:\/\/localhost:[1-9]\d*$/],
  ])('gives the URL by which %s is reached', async (address, url) => {
    const server = sockets.closing(createServer((_, response) => response.end('ok')))
    const bound = await bind(server, parseListenAddress(address))
    expect(bound).toMatch(url)
    expect(await (await fetch(bound)).text()).toBe('ok')
    server.closeAllConnections()
  })

  it.each([
    ['unix:/nowhere/at/all/socket', 'cannot listen on /nowhere/at/all/socket: EACCES, missing folder /nowhere/at/all'],
    ['192.0.2.1:0', 'cannot listen on 192.0.2.1:0: EADDRNOTAVAIL, this machine has no such address'],
    ['nobody.invalid:0', 'cannot listen on nobody.invalid:0: ENOTFOUND, unknown host'],
  ])('says what is wrong with %s', async (address, detail) => {
    const server = sockets.closing(createServer())
    await expect(bind(server, parseListenAddress(address))).rejects.toMatchObject({ code: 'config_error', detail })
  })

  it('lets a burst of connections wait while the process is busy', async () => {
    const door = new URL('../../../src/listen/index.ts', import.meta.url).href
    const script = `import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
      import { bind, parseListenAddress } from ${JSON.stringify(door)}
      console.log(await bind(createServer(), parseListenAddress('127.0.0.1:0')))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    sockets.closing({ close: () => child.kill('SIGKILL') })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    // It accepts nothing from here on; what connects is in the system's queue.
    child.kill('SIGSTOP')
    const clients = Array.from({ length: 1500 }, () =>
      connect(Number(new URL(line.toString().trim()).port), '127.0.0.1'),
    )
    sockets.closing({ close: () => clients.forEach((client) => client.destroy()) })
    const connected = Promise.all(clients.map((client) => once(client, 'connect')))
    await expect(connected).resolves.toHaveLength(clients.length)
  })
})
