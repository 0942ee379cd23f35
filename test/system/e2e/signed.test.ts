import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { verifySigv4 } from '../../../lab/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { type CredentialsWorld, openCredentialsWorld, ROLE } from '../../support/e2e/credentials.ts'
import { proxyConfig } from '../../support/e2e/run.ts'

let world: CredentialsWorld
let alice: Record<string, string>
const sockets = createSockets()

beforeAll(async () => {
  world = await openCredentialsWorld({ showClaims: true })
  alice = await world.bearer({ sub: 'alice', groups: ['dev'] })
})
afterEach(() => sockets.closeAll())
afterAll(() => world.close())

const send = async (method: string, target: string, headers: Record<string, string> = {}, body?: string) => {
  world.backend.forget()
  const init = { method, headers: { ...alice, ...headers }, body: body ?? null }
  await (await fetch(`${world.proxy.url}${target}`, init)).text()
  const [seen] = world.backend.requests('/aws')
  return seen
}

describe('a signed route', () => {
  it.each([
    ['a notification', 'POST', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['a POST with nothing in it', 'POST', ''],
    ['a POST without a body', 'POST', undefined],
    ['a GET', 'GET', undefined],
    ['a DELETE', 'DELETE', undefined],
    ['something that is not JSON', 'POST', 'ü'.repeat(1_000)],
  ])('signs %s', async (_what, method, body) => {
    const headers = body === undefined ? {} : { 'content-type': 'text/plain' }
    const seen = await send(method, '/aws/deeper%20still//x?b=2&a=%C3%BC&a=&c', headers, body)
    expect(seen?.verified).toMatchObject({ roleArn: `${ROLE}developer`, subject: 'alice' })
    expect(seen?.target).toBe('/aws/mcp/deeper%20still//x?b=2&a=%C3%BC&a=&c')
    expect(seen?.body.toString()).toBe(body ?? '')
  })

  it('takes nothing of AWS from the caller, neither headers nor parameters', async () => {
    const seen = await send('GET', '/aws?x-amz-signature=forged&q=1&X-Amz%2dSecurity-Token=forged', {
      'x-amz-date': '20200101T000000Z',
      'X-Amz-Security-Token': 'forged',
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      x_amz_meta: 'forged',
    })
    expect(seen?.verified).toMatchObject({ subject: 'alice' })
    expect(seen?.target).toBe('/aws/mcp?q=1')
    expect(seen?.headers.join('\n')).not.toMatch(/forged|UNSIGNED|20200101/)
  })

  it('signs and sends what of AWS carries meaning, in headers and parameters', async () => {
    const meant = { 'x-amz-copy-source': '/bucket/key', 'x-amz-meta-owner': 'a  b', 'x-amz-target': 'Svc.Op' }
    const seen = await send('POST', '/aws?x-amz-acl=private', meant, '{}')
    expect(seen?.verified).toMatchObject({ subject: 'alice' })
    expect(seen?.target).toBe('/aws/mcp?x-amz-acl=private')
    for (const [name, value] of Object.entries(meant))
      expect(seen?.headers[(seen.headers.indexOf(name) ?? -1) + 1]).toBe(value)
    expect(seen?.headers.join(' ')).toMatch(/SignedHeaders=[^,]*x-amz-copy-source;[^,]*x-amz-meta-owner;/)
  })

  it.each([
    ['a coding', { 'content-encoding': 'gzip,aws-chunked' }],
    ['a digest', { 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' }],
  ])('answers 400 that says so to a body that is signed in pieces, by %s', async (_what, headers) => {
    world.backend.forget()
    const init = { method: 'PUT', headers: { ...alice, ...headers }, body: '2\r\nab\r\n0\r\n\r\n' }
    const response = await fetch(`${world.proxy.url}/aws`, init)
    expect(response.status).toBe(400)
    expect(JSON.stringify(await response.json())).toMatch(/aws-chunked.*"aws_chunked"/)
    expect(world.backend.requests('/aws')).toEqual([])
  })

  it('signs the request that becomes another protocol', async () => {
    const seen: IncomingMessage[] = []
    const backend = createServer((_, response) => void response.writeHead(426).end())
    backend.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      seen.push(request)
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
    })
    const target = `http://${await sockets.listen(backend)}/ws`
    const { routes, auth } = await proxySpec()
    const route = { name: 'ws', path: '/ws', target, externalAuthConfigRef: { name: 'aws' }, allowUpgrade: true }
    await world.proxy.write('proxy.json', proxyConfig({ auth, routes: [...routes, route] }))
    expect(await world.proxy.reload()).toEqual({ ok: true })
    const ask = `GET /ws?token=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\nX-Amz-Date: forged\r\nAuthorization: ${alice['authorization']}\r\n\r\n`
    await rawConnect(world.proxy.url, ask).until(/^HTTP\/1\.1 101 .*hello/s)
    const [request] = seen
    const { method = '', url = '', rawHeaders = [] } = request ?? {}
    const verdict = verifySigv4(
      { method, target: url, headers: rawHeaders, body: Buffer.alloc(0) },
      { region: 'eu-west-1', service: 'aws-mcp', nowMs: Date.now(), lookup: world.sts.lookup },
    )
    expect(verdict).toMatchObject({ ok: true, credentials: { subject: 'alice', roleArn: `${ROLE}developer` } })
  })
})

/** Configuration of the world. */
async function proxySpec(): Promise<{ routes: object[]; auth: object }> {
  const text = await readFile(path.join(world.proxy.directory, 'proxy.json'), 'utf8')
  return (JSON.parse(text) as { spec: { routes: object[]; auth: object } }).spec
}

describe('GET /decisions', () => {
  it('has the last 200 requests, newest first, with their claims where that was asked for', async () => {
    const bob = await world.bearer({ sub: 'bob', groups: ['dev', 'night'] })
    await Promise.all(Array.from({ length: 205 }, () => world.status('aws', alice)))
    const response = await world.call('aws', bob)
    const { json } = await world.admin('/decisions')
    const decisions = json['decisions'] as Record<string, unknown>[]
    expect(decisions).toHaveLength(200)
    expect(decisions[0]).toMatchObject({
      requestId: response.headers.get('x-request-id'),
      route: 'aws',
      claims: { sub: 'bob', groups: ['dev', 'night'] },
      decision: {
        config: 'default/aws',
        choice: {
          roleArn: `${ROLE}developer`,
          by: 'mapping',
          steps: [
            { mapping: 1, kind: 'claim', rule: 'admins', outcome: 'not_matched' },
            { mapping: 2, kind: 'matcher', rule: '"dev" in claims.groups', outcome: 'matched' },
          ],
        },
        sessionNameClaim: 'sub',
        session: { name: 'bob', changes: [] },
      },
    })
  })

  it('has no value of a claim unless it was asked for', async () => {
    const quiet = await openCredentialsWorld()
    const carol = await quiet.bearer({ sub: 'carol-whose-name-is-private', groups: ['night'] })
    expect(await quiet.status('aws', carol)).toBe(200)
    const { json } = await quiet.admin('/decisions')
    await quiet.close()
    const steps = [
      { mapping: 1, outcome: 'not_matched' },
      { mapping: 2, outcome: 'not_matched' },
    ]
    const choice = { roleArn: `${ROLE}reader`, by: 'fallback', steps }
    expect(json['decisions']).toMatchObject([{ route: 'aws', decision: { choice, session: { changes: [] } } }])
    expect(JSON.stringify(json)).not.toMatch(/carol|night/)
  })
})
