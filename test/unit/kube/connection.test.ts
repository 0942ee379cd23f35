import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type KubeConnection, type KubeSettings, openKubeConnection } from '../../../src/kube/index.ts'
import { TLS } from '../../support/tls.ts'
import { silentLog } from '../../support/kube/manual-timers.ts'

let directory: string
let server: Server
let connection: KubeConnection | undefined
let tokens: (string | undefined)[]

beforeEach(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-kube-'))
  tokens = []
  server = createServer(TLS.server, (request, response) => {
    tokens.push(request.headers.authorization)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await connection?.close()
  server.closeAllConnections()
  server.close()
  await rm(directory, { recursive: true })
})

const file = (name: string): string => path.join(directory, name)

function open(more: Partial<KubeSettings> = {}): KubeConnection {
  const { port } = server.address() as AddressInfo
  const settings: KubeSettings = {
    server: `https://localhost:${port}`,
    ca: { file: file('ca.crt') },
    token: { file: file('token') },
    clientCert: undefined,
    clientKey: undefined,
    serverName: undefined,
    insecureSkipVerify: false,
    namespace: 'n',
    ...more,
  }
  return (connection = openKubeConnection({ settings, fieldManager: 'me', userAgent: 'us', log: silentLog }))
}

const ask = ({ client }: KubeConnection): Promise<unknown> => client.raw('GET', '/version')

test('a token that the kubelet has renewed is the one of the next request', async () => {
  await writeFile(file('ca.crt'), TLS.ca)
  await writeFile(file('token'), 'first\n')
  const opened = open()
  await ask(opened)
  await writeFile(file('token'), 'second\n')
  await vi.waitFor(async () => {
    await ask(opened)
    expect(tokens.at(-1)).toBe('Bearer second')
  }, 15_000)
  expect(tokens[0]).toBe('Bearer first')
})

test('without its authority nothing is sent; when it is there, or is another, that one counts', async () => {
  await writeFile(file('token'), 'secret')
  const opened = open()
  await expect(ask(opened)).rejects.toMatchObject({ status: 0, reason: 'no CA certificate' })
  await writeFile(file('ca.crt'), TLS.otherCa)
  await vi.waitFor(() => expect(ask(opened)).rejects.toMatchObject({ reason: 'unreachable' }), 15_000)
  expect(tokens).toEqual([])
  await writeFile(file('ca.crt'), TLS.ca)
  await vi.waitFor(() => ask(opened), 15_000)
  expect(tokens).toEqual(['Bearer secret'])
})

test('a connection that was closed sends nothing', async () => {
  await writeFile(file('ca.crt'), TLS.ca)
  await writeFile(file('token'), 'secret')
  const opened = open()
  await ask(opened)
  await opened.close()
  await expect(ask(opened)).rejects.toMatchObject({ status: 0, reason: 'closed' })
  expect(tokens).toHaveLength(1)
})
