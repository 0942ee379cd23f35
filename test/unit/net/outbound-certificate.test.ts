import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { type ClientCertificate, createOutbound } from '../../../src/net/index.ts'
import { createManualClock, monotonicOf } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const pairOf = ({ cert, key }: { cert: Buffer; key: Buffer }): ClientCertificate => ({
  cert,
  key: new Secret(key.toString()),
})

test('a client certificate is shown, a new one on new connections, and without one nothing is sent', async () => {
  const seen: (string | undefined)[] = []
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    seen.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN?.toString())
    response.end('{}')
  }
  const url = await sockets.https({ requestCert: true, rejectUnauthorized: false, ca: TLS.ca, ...TLS.server }, listener)
  let shown: ClientCertificate | undefined = pairOf(TLS.client)
  const clock = createManualClock()
  const options = {
    name: 'idp',
    clock,
    monotonicClock: monotonicOf(clock),
    breaker: false,
    caCert: () => TLS.ca,
  } as const
  const outbound = sockets.closing(createOutbound({ ...options, clientCertificate: () => shown }))
  const ask = () => outbound.request({ method: 'GET', url })
  await ask()
  await ask()
  shown = pairOf(TLS.server)
  await ask()
  shown = undefined
  await expect(ask()).rejects.toMatchObject({ kind: 'unreachable' })
  expect(seen.slice(0, 2)).toEqual(['client', 'client'])
  expect(seen).toHaveLength(3)
  expect(seen[2]).not.toBe('client')
})
