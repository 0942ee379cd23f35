import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'
import { alone } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function proxyAt(address: string) {
  const backend = await sockets.http((_request, response) => response.end('fine'))
  const files = {
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      listen: { address, tls: { certFile: 'tls.crt', keyFile: 'tls.key' } },
      admin: { address: '127.0.0.1:0' },
      auth: { mode: 'anonymous' },
      routes: [
        {
          name: 'r',
          path: '/r',
          target: `${backend}/mcp?apiKey=a-key-in-a-query`,
          externalAuthConfigRef: { name: 'none' },
        },
      ],
    }),
    'tls.crt': TLS.server.cert,
    'tls.key': TLS.server.key,
  }
  const running = await startWith(sockets, files, ['proxy', '--config', '{dir}'])
  const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
  const { port } = new URL(url)
  const headerOf = async (path: string): Promise<unknown> => {
    const { headers } = await alone(`https://127.0.0.1:${port}${path}`, { body: {}, ca: TLS.ca })
    return headers['strict-transport-security']
  }
  return { admin, headerOf }
}

it('a proxy that terminates TLS sends HSTS, and /config shows no query of a target', async () => {
  const { admin, headerOf } = await proxyAt('0.0.0.0:0')
  expect(await headerOf('/r')).toBe('max-age=31536000')
  expect(await headerOf('/nowhere')).toBe('max-age=31536000')
  const config = await (await fetch(`${admin}/config`)).text()
  expect(config).toContain('/mcp')
  expect(config).not.toContain('a-key-in-a-query')
}, 30_000)

it('on this machine it does not: a browser would hold all ports of localhost to it', async () => {
  const { headerOf } = await proxyAt('127.0.0.1:0')
  expect(await headerOf('/r')).toBeUndefined()
}, 30_000)
