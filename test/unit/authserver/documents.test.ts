import { afterEach, expect, it } from 'vitest'
import { createClientNetwork } from '../../../src/authserver/client-network.ts'
import { createClientDocuments } from '../../../src/authserver/clients/documents.ts'
import { capabilitiesOf } from '../../../src/authserver/clients/metadata.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Documents of a host whose `/slow/…` never answers; what waits for one gives up after `deadlineMs`. */
async function open(maxQueued?: number, deadlineMs = 120_000) {
  const clock = createManualClock()
  let asked = 0
  const host = await sockets.https(TLS.server, (request, response) => {
    asked += 1
    if (request.url?.startsWith('/slow') === true) return
    const id = `${host}${request.url ?? ''}`
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ client_id: id, redirect_uris: ['https://app.example.com/cb'] }))
  })
  const outbound = createOutbound({
    name: 'clients',
    deadlineMs,
    breaker: false,
    clock,
    guard: { allowPrivateIP: true, configuredUrls: ['https://localhost/'] },
    caCert: () => TLS.ca,
    ...(maxQueued === undefined ? {} : { maxQueued }),
  })
  sockets.closing(outbound)
  const clientNetwork = createClientNetwork()
  const documents = createClientDocuments({
    outbound,
    clientNetwork,
    capabilities: capabilitiesOf({}, { grantTypes: ['authorization_code'], scopes: new Set() }),
    clock,
    log: createRecordingLog(),
  })
  const find = (address: string, path: string) => clientNetwork.run(address, () => documents.find(`${host}${path}`))
  /** Networks that ask for more slow documents than there are places. */
  const flood = (networks: number, each: number) =>
    Array.from({ length: networks * each }, (_, index) =>
      find(`192.0.2.${index % networks}`, `/slow/${index}`).catch((error: unknown) => error),
    )
  return { clock, find, flood, asked: () => asked }
}

it('slow documents named by ten networks delay no other client', async () => {
  const { find, flood } = await open()
  const slow = flood(10, 60)
  expect(await find('198.51.100.1', '/client')).toMatchObject({ kind: 'document' })
  await sockets.closeAll()
  await Promise.all(slow)
})

it('a document that others have in their lines is not waited for there', async () => {
  const { find, flood } = await open()
  const slow = flood(1, 100)
  const behind = find('192.0.2.0', '/client').catch(() => undefined)
  expect(await find('198.51.100.1', '/client')).toMatchObject({ kind: 'document' })
  await sockets.closeAll()
  await Promise.all([...slow, behind])
})

it('one that was not asked for, for want of places, is not held against the client', async () => {
  const { find, flood } = await open(5, 2_000)
  const slow = flood(1, 100)
  const refused = find('192.0.2.0', '/client')
  await expect(refused).rejects.toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 })
  await Promise.all(slow)
  expect(await find('192.0.2.0', '/client')).toMatchObject({ kind: 'document' })
})

it('one network asks once for a document, however many of its people want it', async () => {
  const { find, asked } = await open()
  await Promise.all(Array.from({ length: 20 }, () => find('198.51.100.1', '/client')))
  expect(asked()).toBe(1)
})

it('an unusable redirect URI beside usable ones is ignored with a warning; alone it is refused', async () => {
  const unusable = ['http://app.example.com/cb', 'com.example.app:/cb', 'https://app.example.com/cb#x', null]
  const documents = new Map<string, unknown>([
    ['/some', { redirect_uris: [...unusable, 'https://app.example.com/cb'], scope: null, client_secret: null }],
    ['/none', { redirect_uris: unusable }],
  ])
  const host: string = await sockets.https(TLS.server, (request, response) => {
    const { url = '' } = request
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ client_id: `${host}${url}`, ...(documents.get(url) as object) }))
  })
  const clock = createManualClock()
  const log = createRecordingLog()
  const guard = { allowPrivateIP: true, configuredUrls: ['https://localhost/'] }
  const outbound = sockets.closing(createOutbound({ name: 'clients', clock, guard, caCert: () => TLS.ca }))
  const capabilities = capabilitiesOf({}, { grantTypes: ['authorization_code'], scopes: new Set() })
  const clientNetwork = createClientNetwork()
  const documentsOf = createClientDocuments({ outbound, clientNetwork, capabilities, clock, log })
  const find = (id: string) => documentsOf.find(id)
  const found = clientNetwork.run('192.0.2.1', () => find(`${host}/some`))
  expect((await found).redirectUris).toEqual(['https://app.example.com/cb'])
  expect(log.lines.join('')).toContain('"count":4')
  expect(log.lines.join('')).not.toContain('com.example.app')
  await expect(clientNetwork.run('192.0.2.1', () => find(`${host}/none`))).rejects.toMatchObject({
    error: 'invalid_redirect_uri',
  })
})
