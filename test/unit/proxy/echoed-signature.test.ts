import { afterEach, expect, it } from 'vitest'
import { type Credential, Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const aws: Credential = {
  kind: 'aws',
  accessKeyId: 'ASIAEXAMPLE',
  secretAccessKey: new Secret('secret-access-key'),
  sessionToken: new Secret('the-session-token'),
  region: 'eu-central-1',
  service: 'mcp',
  signing: { day: '', key: undefined },
}

it('no header of an answer goes out that has the SigV4 signature of the request in it', async () => {
  const signatures: string[] = []
  const origin = await sockets.http((request, response) => {
    const { authorization = '' } = request.headers
    const signature = authorization.slice(-64)
    signatures.push(signature)
    const headers = {
      'x-whole': authorization,
      'x-signature': signature,
      'x-within': `sig=${signature};`,
      'x-other': 'kept',
    }
    response.writeHead(200, headers).end('{}')
  })
  const route = createRoute(sockets, origin, { needsBody: true, type: 'cloudSts', credential: () => aws })
  const proxy = await startProxy(sockets, runtimeOf([route]))
  const { status, headers } = await fetch(proxy.url, { method: 'POST', body: '{}' })
  expect([status, headers.get('x-other')]).toEqual([200, 'kept'])
  expect(signatures).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
  expect(JSON.stringify([...headers])).not.toContain(signatures[0])
})
