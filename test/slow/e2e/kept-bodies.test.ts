import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { afterEach, describe, expect, it } from 'vitest'
import { LAB_AUDIENCE, startLabIdentityProvider, startLabSts } from '../../../lab/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { ROLE } from '../../support/e2e/credentials.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const MIB = 1024 * 1024
const UPLOADS = 25
const BODY = Buffer.alloc(10 * MIB, 'x')
/** Of the container in config/deploy/sidecar.yaml, and that of an injected one. */
const LIMITS = { sidecar: 512 * MIB, injected: 384 * MIB }

const clock = { now: () => Date.now() }
const sockets = createSockets()
let running: Running | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  await sockets.closeAll()
})

/** A started proxy with one signed route to a TLS backend that reads bodies and answers on demand. */
async function start(limitBytes: number) {
  const identity = sockets.closing(await startLabIdentityProvider({ port: 0, clock, clients: [] }))
  const trust = {
    issuer: identity.url,
    keys: identity.jwks,
    roles: [{ arn: `${ROLE}reader`, audiences: [LAB_AUDIENCE] }],
  }
  const sts = sockets.closing(await startLabSts({ port: 0, clock, trust, faults: identity.faults }))
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const received: number[] = []
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (Number(incoming.headers['content-length'] ?? MIB) >= MIB) await released
    let bytes = 0
    for await (const chunk of incoming) bytes += (chunk as Buffer).length
    received.push(bytes)
    response.end('{}')
  }
  const backend = createServer(TLS.server, (incoming, response) => void answer(incoming, response))
  const { directory, remove } = await configFolder({
    'ca.pem': TLS.ca,
    'aws.json': authConfig('aws', {
      type: 'awsSts',
      awsSts: { region: 'eu-west-1', fallbackRoleArn: `${ROLE}reader` },
    }),
    'proxy.json': proxyConfig({
      auth: {
        mode: 'oauth',
        oauth: {
          resourceUrl: 'http://127.0.0.1/',
          providers: [{ name: 'lab', issuerUrl: identity.url, audience: LAB_AUDIENCE }],
        },
      },
      routes: [
        {
          name: 'aws',
          path: '/',
          target: `https://${await sockets.listen(backend)}/mcp`,
          targetTls: { caCertPath: 'ca.pem', serverName: 'localhost' },
          externalAuthConfigRef: { name: 'aws' },
        },
      ],
    }),
  })
  sockets.closing({ close: remove })
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--sts-endpoint', sts.url]
  running = extauth(['proxy', '--config', directory, ...free], { env: { EXTAUTH_MEMORY_LIMIT: String(limitBytes) } })
  const line = (await running.line('listening')) as { url: string; keptBodiesBytes: number }
  const authorization = `Bearer ${await identity.mint({ sub: 'alice' })}`
  /** Status of one POST, and 0 when its connection broke. */
  const post = (body: Buffer, isChunked = false): Promise<number> =>
    new Promise((resolve) => {
      const framing = isChunked ? {} : { 'content-length': body.length }
      const outgoing = request(line.url, { method: 'POST', headers: { authorization, ...framing }, agent: false })
      outgoing.on('response', (response) => resolve(response.resume().statusCode ?? 0)).on('error', () => resolve(0))
      if (isChunked) for (let at = 0; at < body.length; at += 65_536) outgoing.write(body.subarray(at, at + 65_536))
      outgoing.end(isChunked ? undefined : body)
    })
  return { ...line, post, release, received }
}

/** The most that a process ever had resident, in bytes; Linux says so. */
const mostResident = (pid: number | undefined): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

describe('uploads of 10 MiB to a signed route, 25 at once by one caller', () => {
  it.each([
    ['of known length under the limit of the sidecar', LIMITS.sidecar, false],
    ['of unknown length under the limit of the sidecar', LIMITS.sidecar, true],
    ['of known length under the limit of an injected container', LIMITS.injected, false],
  ])(
    '%s: the process stays below it',
    async (_what, limitBytes, isChunked) => {
      const { post, release, received, keptBodiesBytes } = await start(limitBytes)
      expect(keptBodiesBytes).toBe((limitBytes - 256 * MIB) / 2)
      // A process that has served has grown: what it needs for that is not there for bodies.
      for (let round = 0; round < 15; round++)
        await Promise.all(Array.from({ length: 32 }, () => post(Buffer.from('{}'))))
      received.length = 0
      const answers = Array.from({ length: UPLOADS }, () => post(BODY, isChunked))
      await new Promise((resolve) => setTimeout(resolve, 2000))
      release()
      const statuses = await Promise.all(answers)
      const most = mostResident(running?.process.pid)
      expect(most).toBeLessThan(limitBytes)
      // An eighth of the budget is for small bodies.
      const fitting = Math.min(UPLOADS, Math.floor((keptBodiesBytes * 7) / 8 / BODY.length))
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(Math.min(6, fitting))
      expect(received.every((bytes) => bytes === BODY.length)).toBe(true)
      expect(await post(Buffer.from('{}'))).toBe(200)
    },
    60_000,
  )
})
