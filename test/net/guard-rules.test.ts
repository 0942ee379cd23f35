import { afterEach, describe, expect, it } from 'vitest'
import { createAddressCheck, resolveChecked } from '../../src/net/guard.ts'
import { createOutbound } from '../../src/net/index.ts'
import { createSockets } from '../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('of the addresses of a name', () => {
  it('only those that may be reached are tried, whatever stands beside them', async () => {
    const check = createAddressCheck({ allowPrivateIP: false, configuredUrls: ['https://idp.example'] })
    const resolve = () => Promise.resolve(['10.0.0.1', '8.8.8.8', '169.254.169.254', '127.0.0.1', '9.9.9.9'])
    expect(await resolveChecked('idp.example', check, resolve)).toEqual(['8.8.8.8', '9.9.9.9'])
  })

  it('loopback is for loopback names, although one is configured', () => {
    const check = createAddressCheck({ allowPrivateIP: true, configuredUrls: ['http://localhost:8080'] })
    expect([check('localhost', '127.0.0.1'), check('idp.example', '127.0.0.1'), check('idp.example', '::1')]).toEqual([
      true,
      false,
      false,
    ])
  })
})

it('while the configured CA cannot be read nothing is sent, and the system roots do not stand in for it', async () => {
  let requests = 0
  const url = await sockets.http((_request, response) => {
    requests += 1
    response.end()
  })
  const client = sockets.closing(createOutbound({ name: 'idp', clock: Date, caCert: () => undefined }))
  await expect(client.request({ method: 'GET', url })).rejects.toMatchObject({ kind: 'unreachable' })
  expect(requests).toBe(0)
})
