import type { Socket } from 'node:net'
import {
  type Common,
  type ProxyProcess,
  type ProxyProcessOptions,
  startProxy,
  stateOfConnections,
} from '../compose/proxy/index.ts'
import { createEphemeralKeys, type EphemeralKeys } from '../signing/index.ts'
import { asFailure, causeOf, Secret } from '../core/index.ts'
import { ConfigError, EXIT, type Io, namesIn } from '../compose/index.ts'
import type { OpenLog } from '../report/index.ts'
import { createMemoryOverChannel } from './memory-over-channel.ts'
import type { StartFailure, SupervisorMethods, WorkerMethods } from './messages.ts'
import { type Channel, createPeer, type Peer } from './peer.ts'

/**
 * Runs one worker of a proxy over the channel to its supervisor, until stopped or the supervisor exits. Returns the
 * exit code.
 */
export async function runWorker(
  options: ProxyProcessOptions & { readonly log: OpenLog },
  channel: Channel,
  onConnection: (take: (socket: Socket) => boolean) => void,
  io: Pick<Io, 'stop' | 'onReload'>,
): Promise<number> {
  const { log } = options
  const { promise: stopped, resolve: stop } = Promise.withResolvers<string>()
  let proxy: ProxyProcess | undefined
  const running = (): ProxyProcess => {
    if (proxy === undefined) throw new Error('the worker has not started')
    return proxy
  }
  const methods: WorkerMethods = {
    config: () => running().config(),
    readiness: () => running().readiness(),
    metrics: async () => ({
      snapshot: await running().openMetrics.snapshot(),
      names: namesIn(running().config()),
    }),
    cache: () => running().cache(),
    purge: (filter) => running().purge(filter),
    disconnect: (filter) => running().disconnect(filter),
    connections: (filter) => running().connections(filter),
    decisions: () => running().decisions(),
    reload: () => running().reload(),
    published: (id, message) => memory.onMessage(id, message),
    beat: () => undefined,
    stop: () => stop('stopped'),
  }
  const peer = createPeer<SupervisorMethods>(channel, methods)
  const memory = createMemoryOverChannel(peer, log)
  await using opened = new AsyncDisposableStack()
  try {
    const { stdin, common } = await commonOf(peer, memory.open)
    proxy = await startProxy({ ...options, stdin }, opened, common)
  } catch (error) {
    await opened.disposeAsync()
    log.flush()
    await peer.ask('failed', [describe(error)])
    return EXIT.failed
  }
  const serving = proxy
  onConnection((socket) => serving.take(socket))
  await peer.ask('ready', [])
  // A closing terminal signals all processes; workers reload on request of the supervisor.
  io.onReload(() => undefined)
  // A terminal signals all processes; the supervisor stops its workers.
  await Promise.race([io.stop, stopped])
  await opened.disposeAsync()
  log.flush()
  return EXIT.fine
}

async function commonOf(
  peer: Peer<SupervisorMethods>,
  memory: Common['memory'],
): Promise<{ readonly common: Common; readonly stdin: string | undefined }> {
  const { url, sessionKey, ticketKeys, settings, stdin } = await peer.ask('common', [])
  const keys = new Map<string, EphemeralKeys>()
  const common: Common = {
    url,
    sessionKey: new Secret(sessionKey),
    ticketKeys,
    settings,
    memory,
    ephemeralKeys(server) {
      const found = keys.get(server)
      if (found === undefined) throw new Error('the authorization server has no prepared keys')
      return found
    },
    async prepare(config) {
      const names = config.authServers.map(({ name }) => name)
      if (config.connections !== undefined) names.push(stateOfConnections(config.connections))
      for (const name of names) {
        if (keys.has(name)) continue
        const { signing, sealing } = await peer.ask('ephemeralKeys', [name])
        keys.set(name, createEphemeralKeys({ signing: new Secret(signing), sealing: new Secret(sealing) }))
      }
    },
  }
  return { common, stdin }
}

function describe(error: unknown): StartFailure {
  if (error instanceof ConfigError) return { lines: error.lines }
  const failure = asFailure(error)
  return { code: failure.code, detail: failure.detail, systemCode: causeOf(failure.cause).code }
}
