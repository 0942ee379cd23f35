import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import { freePort } from '../../lab/free-port.ts'
import { startLabBackend } from '../../lab/index.ts'
import { extauth } from '../../test/support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../test/support/e2e/run.ts'
import { AUTHORITY, haproxyConfig, inOne, nginxConfig } from './configs.ts'
import { startGateway } from './programs.ts'

/** The program with nginx and HAProxy before it and behind it. */
export interface GatewayWorld {
  /** Where requests may come in, by name. */
  readonly fronts: Readonly<Record<string, string>>
  /** Names of routes to the lab's MCP server, and to the echo backend. */
  readonly mcpRoutes: readonly string[]
  readonly plainRoutes: readonly string[]
  /** Requests that reached the echo backend. */
  readonly received: () => number
  close(): Promise<void>
}

/** Starts everything; what has been started is ended when something does not start. */
export async function createGatewayWorld(): Promise<GatewayWorld> {
  const ends: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const end of ends.splice(0).toReversed()) await end()
  }
  try {
    const directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-gateways-'))
    ends.push(() => rm(directory, { recursive: true, force: true }))
    const clock = { now: () => Date.now() }
    const lab = await startLabBackend({ port: 0, mounts: { '/mcp': { kind: 'none' } }, clock, keep: 1 })
    ends.push(() => lab.close())
    const plain = await startPlain()
    ends.push(plain.close)
    const proxy = await freePort()
    const ports = {
      nginx: { plain: await freePort(), kept: await freePort() },
      haproxy: { before: await freePort() },
    }
    const behind: Record<string, { mcp: number; plain: number; scheme: string }> = {}
    for (const name of ['nginx', 'nginx-tls', 'haproxy', 'haproxy-tls'])
      behind[name] = { mcp: await freePort(), plain: await freePort(), scheme: name.endsWith('tls') ? 'https' : 'http' }
    const at = (name: string, kind: 'mcp' | 'plain'): number => behind[name]?.[kind] ?? 0
    const pem = path.join(directory, 'server.pem')
    await writeFile(pem, inOne())
    for (const kind of ['mcp', 'plain'] as const) {
      const backend = kind === 'mcp' ? new URL(lab.url).host : plain.host
      // One of each is before the proxy; the other's ports for that are unused.
      const [nginx, haproxy] =
        kind === 'mcp'
          ? [ports.nginx, ports.haproxy]
          : [{ plain: await freePort(), kept: await freePort() }, { before: await freePort() }]
      const own = { ...nginx, behind: at('nginx', kind), behindTls: at('nginx-tls', kind) }
      const other = { ...haproxy, behind: at('haproxy', kind), behindTls: at('haproxy-tls', kind) }
      const folder = path.join(directory, kind)
      const to = `127.0.0.1:${proxy}`
      const running = [
        await startGateway('nginx', folder, nginxConfig(own, to, backend), Object.values(own)),
        await startGateway('haproxy', folder, haproxyConfig(other, to, backend, pem), Object.values(other)),
      ]
      ends.push(...running.map((one) => () => one.close()))
    }
    const target = (name: string, kind: 'mcp' | 'plain'): string =>
      name === 'none'
        ? `http://${kind === 'mcp' ? new URL(lab.url).host : plain.host}`
        : `${behind[name]?.scheme}://127.0.0.1:${at(name, kind)}`
    const names = ['none', ...Object.keys(behind)]
    const routes = names.flatMap((name) =>
      (['mcp', 'plain'] as const).map((kind) => ({
        name: `${kind}-${name}`,
        path: `/${kind}-${name}`,
        target: `${target(name, kind)}/${kind}`,
        externalAuthConfigRef: { name: 'none' },
        allowUpgrade: true,
        targetTls: name.endsWith('tls') ? { caCertPath: AUTHORITY } : undefined,
      })),
    )
    const config = await configFolder({
      'auth.json': authConfig('none', { type: 'unauthenticated' }),
      'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes, listen: { trustedProxies: ['127.0.0.1/32'] } }),
    })
    ends.push(config.remove)
    const admin = await freePort()
    const args = ['proxy', '--config', config.directory, '--listen', `127.0.0.1:${proxy}`, '--log-level', 'warn']
    const running = extauth([...args, '--admin', `127.0.0.1:${admin}`])
    ends.push(async () => {
      running.process.kill('SIGTERM')
      await running.ended
    })
    await ready(admin)
    const local = (port: number): string => `http://127.0.0.1:${port}`
    const fronts = {
      direct: local(proxy),
      'nginx (HTTP/1.0)': local(ports.nginx.plain),
      'nginx (kept)': local(ports.nginx.kept),
      HAProxy: local(ports.haproxy.before),
    }
    const of = (kind: string) => names.map((name) => `${kind}-${name}`)
    return { fronts, mcpRoutes: of('mcp'), plainRoutes: of('plain'), received: plain.received, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function ready(port: number): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    const status = await fetch(`http://127.0.0.1:${port}/readiness`).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('extauth is not ready')
}

/** A backend that returns the length and hash of the body; `?bytes=N` asks for so many back, `Upgrade: echo` for an echo. */
async function startPlain() {
  let received = 0
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    received++
    const hash = createHash('sha256')
    let bytes = 0
    request.on('data', (data: Buffer) => {
      bytes += data.length
      hash.update(data)
    })
    request.on('end', () => {
      const wanted = Number(new URL(request.url ?? '/', 'http://h').searchParams.get('bytes') ?? 0)
      response.setHeader('x-got', `${request.method} ${bytes} ${hash.digest('hex')}`)
      response.setHeader('x-id', request.headers['x-id'] ?? '')
      // Without a length: in chunks, with trailers.
      const hasChunks = request.httpVersion === '1.1' && request.method !== 'HEAD'
      if (hasChunks) response.setHeader('trailer', 'x-sum')
      response.write(Buffer.alloc(wanted, 'x'))
      if (hasChunks) response.addTrailers({ 'x-sum': '1' })
      response.end('end')
    })
  }
  const server = createServer(answer)
  // Servers before the proxy close connections earlier; their losses are not tested.
  server.keepAliveTimeout = 300_000
  server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
    received++
    socket.on('error', () => undefined)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, received: () => received, close }
}
