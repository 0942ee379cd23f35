import { expect, it } from 'vitest'
import { createAddressCheck, resolveChecked } from '../../../src/net/guard.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

const answers = (...addresses: string[]) => ({ resolve: () => Promise.resolve(addresses) })

it('of mixed answers only the addresses that pass are tried', async () => {
  const check = createAddressCheck({ allowPrivateIP: false, configuredUrls: ['https://idp.example/'] })
  const { resolve } = answers('10.0.0.1', '1.1.1.1', '127.0.0.1', '169.254.169.254')
  expect(await resolveChecked('idp.example', check, resolve)).toEqual(['1.1.1.1'])
})

it('a foreign name that resolves to loopback leads nowhere, even where loopback is configured', async () => {
  const check = createAddressCheck({
    allowPrivateIP: true,
    configuredUrls: ['http://localhost/', 'https://idp.example/'],
  })
  const { resolve } = answers('127.0.0.1')
  expect(await resolveChecked('localhost', check, resolve)).toEqual(['127.0.0.1'])
  await expect(resolveChecked('idp.example', check, resolve)).rejects.toMatchObject({ kind: 'blocked_address' })
})

it('while its CA is missing nothing is sent at all', async () => {
  const sockets = createSockets()
  let requests = 0
  const url = await sockets.http((_request, response) => {
    requests += 1
    response.end()
  })
  const outbound = createOutbound({ name: 'x', clock: { now: () => Date.now() }, caCert: () => undefined })
  await expect(outbound.request({ method: 'GET', url })).rejects.toMatchObject({ kind: 'unreachable' })
  expect(requests).toBe(0)
  await outbound.close()
  await sockets.closeAll()
})
