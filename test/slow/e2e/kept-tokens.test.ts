import { open, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LAB_AUDIENCE, startLabIdentityProvider, startLabSts } from '../../../lab/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { ROLE } from '../../support/e2e/credentials.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const ROUTES = ['exchanged', 'signed', 'plain'] as const
const SECRET = 'the-secret-of-the-proxy'

const clock = { now: () => Date.now() }
const sockets = createSockets()
let world: Awaited<ReturnType<typeof start>>
let running: Running

/** A started proxy with a route of each way to a credential, its inspector on, and a backend that answers when it is let. */
async function start() {
  const identity = sockets.closing(
    await startLabIdentityProvider({
      port: 0,
      clock,
      clients: [{ id: 'proxy', secret: new Secret(SECRET), may: ['exchange', 'introspect'], audiences: ['backend'] }],
    }),
  )
  const roles = [{ arn: `${ROLE}reader`, audiences: [LAB_AUDIENCE] }]
  const trust = { issuer: identity.url, keys: identity.jwks, roles }
  const sts = sockets.closing(await startLabSts({ port: 0, clock, trust, faults: identity.faults }))
  const held: (() => void)[] = []
  let isHolding = false
  const backend = await sockets.http((request, response) => {
    request.resume()
    const answer = () => response.setHeader('mcp-session-id', 'a-session').end('{}')
    if (isHolding) held.push(answer)
    else answer()
  })
  const client = { clientId: 'proxy', clientSecretRef: { name: 'proxy', key: 'secret' } }
  const { directory, remove } = await configFolder({
    'exchanged.json': authConfig('exchanged', {
      type: 'tokenExchange',
      tokenExchange: { tokenUrl: `${identity.url}/token`, audience: 'backend', ...client },
    }),
    'signed.json': authConfig('signed', {
      type: 'awsSts',
      awsSts: { region: 'eu-west-1', fallbackRoleArn: `${ROLE}reader` },
    }),
    'plain.json': authConfig('plain', { type: 'unauthenticated' }),
    'secrets/proxy/secret': SECRET,
    'proxy.json': proxyConfig({
      secretsDirectory: 'secrets',
      auth: {
        mode: 'oauth',
        oauth: {
          resourceUrl: 'http://127.0.0.1/',
          providers: [
            {
              name: 'lab',
              issuerUrl: identity.url,
              audience: LAB_AUDIENCE,
              introspectionUrl: `${identity.url}/introspect`,
              clientId: 'proxy',
              clientSecretFile: 'secrets/proxy/secret',
            },
          ],
        },
      },
      routes: ROUTES.map((name) => ({
        name,
        path: `/${name}`,
        target: `${backend}/mcp`,
        externalAuthConfigRef: { name },
      })),
    }),
  })
  sockets.closing({ close: remove })
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--drain-grace', '0s']
  running = extauth(['proxy', '--config', directory, ...free, '--sts-endpoint', sts.url, '--inspector', 'bodies'], {
    env: heapsTo(directory),
  })
  const { url } = (await running.line('listening')) as { url: string }
  return {
    identity,
    directory,
    hold: () => void (isHolding = true),
    held,
    call: async (route: string, token: string, session?: string): Promise<Response> => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      }
      const response = await fetch(new URL(route, url), { method: 'POST', headers, body: '{}' })
      await response.arrayBuffer()
      return response
    },
  }
}

/** On SIGUSR2 a process of this environment writes what it holds into a file there. */
const heapsTo = (directory: string) => ({
  NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${directory}`,
})

async function endOf(file: string): Promise<string> {
  const opened = await open(file)
  try {
    const { size } = await opened.stat()
    const { buffer, bytesRead } = await opened.read({ buffer: Buffer.alloc(8), position: Math.max(0, size - 8) })
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await opened.close()
  }
}

/** All strings that the process holds, as one text. Those over 1,024 characters are cut by V8; tokens are shorter. */
async function stringsHeld(held: Running, directory: string, number: number): Promise<string> {
  held.process.kill('SIGUSR2')
  let text = ''
  const isWhole = async (): Promise<boolean> => {
    const files = (await readdir(directory)).filter((name) => name.endsWith('.heapsnapshot')).sort()
    const name = files[number]
    if (name === undefined) return false
    const file = path.join(directory, name)
    // Its end first: it is tens of MiB long, and looked at while it is written.
    if (!/\]\}\n?$/.test(await endOf(file))) return false
    text = await readFile(file, 'latin1')
    return true
  }
  await expect.poll(isWhole, { timeout: 60_000, interval: 200 }).toBe(true)
  return text
}

beforeAll(async () => {
  world = await start()
})
afterAll(async () => {
  running.process.kill('SIGKILL')
  await running.ended
  await sockets.closeAll()
})

it('a started proxy holds no token of a caller once its requests are over, though it knows the caller again', async () => {
  const { identity, call, directory, hold, held } = world
  const subjects = ['alice', 'bob']
  const jwts = await Promise.all(subjects.map((sub) => identity.mint({ sub, ttlSeconds: 3600 })))
  const opaque = await identity.mint({ sub: 'carol', opaque: true, ttlSeconds: 3600 })
  const bad = await Promise.all([
    identity.mint({ sub: 'dave', aud: ['another-audience'] }),
    identity.mint({ sub: 'erin', ttlSeconds: -600 }),
    identity.mint({ sub: 'frank', aud: ['another-audience'], opaque: true }),
  ])
  // The unique part of a token: the signature, or all of an opaque one.
  const marks = [...jwts.map((token) => token.split('.').at(-1) ?? ''), opaque]

  const callAll = async (): Promise<void> => {
    for (const token of jwts)
      for (const route of ROUTES) {
        const first = await call(route, token)
        expect([route, first.status]).toEqual([route, 200])
        const session = first.headers.get('mcp-session-id') ?? ''
        expect((await call(route, token, session)).status).toBe(200)
      }
    expect((await call('plain', opaque)).status).toBe(200)
    // Rejected, and cached as such.
    expect((await call('signed', opaque)).status).toBe(403)
    for (const token of bad) for (const route of ROUTES) expect((await call(route, token)).status).toBe(401)
  }
  await callAll()

  hold()
  const pending = [...jwts, opaque].map((token) => call('plain', token))
  await expect.poll(() => held.length).toBe(marks.length)
  const during = await stringsHeld(running, directory, 0)
  expect(
    marks.map((mark) => during.includes(mark)),
    'while their requests run',
  ).toEqual(marks.map(() => true))
  for (const answer of held.splice(0)) answer()
  await Promise.all(pending)

  // An idle connection releases its last request at the next check.
  let [after, number] = ['', 1]
  const all = [...marks, ...bad.map((token) => token.split('.').at(-1) ?? '')]
  const heldNow = async (): Promise<boolean[]> => {
    after = await stringsHeld(running, directory, number++)
    return all.map((mark) => after.includes(mark))
  }
  await expect.poll(heldNow, { timeout: 60_000, interval: 1_000 }).toEqual(all.map(() => false))
  expect(after).toContain('sub:alice')
}, 180_000)

it('nor does a started registry hold one that it refused, though it remembers that', async () => {
  const { identity } = world
  const server = { name: 'com.example/one', description: 'One', version: '1.0.0' }
  const providers = [{ name: 'lab', issuerUrl: identity.url, audience: LAB_AUDIENCE }]
  const { directory, remove } = await configFolder({
    'servers.json': JSON.stringify({ servers: [{ server }] }),
    'registry.json': JSON.stringify({
      auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/registry', providers } },
      registries: [{ name: 'default', source: { file: 'servers.json' } }],
    }),
  })
  const free = ['--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0']
  const registry = extauth(['registry', '--config', path.join(directory, 'registry.json'), ...free], {
    env: heapsTo(directory),
  })
  try {
    const { url } = (await registry.line('listening')) as { url: string }
    const tokens = await Promise.all([
      identity.mint({ sub: 'alice', aud: ['another-audience'] }),
      identity.mint({ sub: 'bob', ttlSeconds: -600 }),
    ])
    for (const token of tokens) {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(new URL('/registry/default/v0.1/servers', url), { headers })
      await response.arrayBuffer()
      expect(response.status).toBe(401)
    }
    let number = 0
    const heldNow = async (): Promise<boolean[]> => {
      const text = await stringsHeld(registry, directory, number++)
      return tokens.map((token) => text.includes(token.split('.').at(-1) ?? ''))
    }
    await expect.poll(heldNow, { timeout: 60_000, interval: 1_000 }).toEqual(tokens.map(() => false))
  } finally {
    registry.process.kill('SIGKILL')
    await registry.ended
    await remove()
  }
}, 180_000)
