import { afterEach, describe, expect, it } from 'vitest'
import { createAddressCheck, resolveChecked } from '../../../src/net/guard.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

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

it('a host that the operator chose is reached wherever it is, and nothing else by its leave', () => {
  const guard = { allowPrivateIP: true, configuredUrls: ['https://idp.example/'], chosenHost: 'idp.example' }
  const check = createAddressCheck(guard)
  const asked = [
    ['idp.example', '127.0.0.1'],
    ['idp.example', '169.254.1.1'],
    ['other.example', '127.0.0.1'],
    ['other.example', '169.254.169.254'],
    ['other.example', '10.0.0.1'],
  ] as const
  expect(asked.map(([host, address]) => check(host, address))).toEqual([true, true, false, false, true])
  expect(createAddressCheck({ ...guard, chosenHost: '[fd00::1]' })('fd00::1', 'fd00::1')).toBe(true)
})
