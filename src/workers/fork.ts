import type { WorkerEnd, WorkerProcess } from './worker-process.ts'
import cluster from 'node:cluster'
import type { Io } from '../compose/index.ts'
import type { OpenLog } from '../report/index.ts'
import { passLines } from './log-lines.ts'
import type { MemoryOfWorkers } from './memory-of-workers.ts'
import type { CommonMaterial, StartFailure, SupervisorMethods, WorkerMethods } from './messages.ts'
import { passOnOffered } from './offered.ts'
import { type Channel, createPeer, NoAnswer } from './peer.ts'

/** Says to a worker that the log of its supervisor goes to a terminal. */
const TERMINAL = 'EXTAUTH_WORKER_TERMINAL'

/** Those to which connections can be handed. */
const listening = new Set<unknown>()

export interface ForkOptions {
  readonly memory: MemoryOfWorkers
  readonly common: CommonMaterial
  readonly ephemeralKeys: SupervisorMethods['ephemeralKeys']
  /** Gets the worker's lines beside its own. */
  readonly log: OpenLog
  /** Whether that log is read on a terminal. */
  readonly isTerminal: boolean
}

/**
 * Starts this program again, with the same arguments, as a worker of this process (`node:cluster`: this process accepts the
 * connections and hands them round). The worker writes its log to a pipe, from which whole lines go to `log`.
 */
export function forkWorker({ memory, common, ephemeralKeys, log, isTerminal }: ForkOptions): WorkerProcess {
  cluster.setupPrimary({ stdio: ['ignore', 'ignore', 'pipe', 'ipc'], serialization: 'advanced' })
  const worker = cluster.fork(isTerminal ? { [TERMINAL]: 'true' } : {})
  const { process: child } = worker
  worker.once('listening', () => listening.add(worker))
  worker.once('disconnect', () => listening.delete(worker))
  passOnOffered(child, () => listening.size > 0)
  if (child.stderr !== null) passLines(child.stderr, (lines) => log.pass(lines))

  const channel: Channel = {
    send(message, onSent) {
      if (child.connected) child.send(message, (error) => onSent(error))
      else onSent(new NoAnswer('gone'))
    },
    onMessage: (listener) => void child.on('message', listener),
    onClose: (listener) => void child.once('disconnect', listener),
  }
  const started = Promise.withResolvers<{ readonly url: string } | { readonly failure: StartFailure }>()
  const ended = Promise.withResolvers<WorkerEnd>()
  const part = memory.partOf((id, message) => void peer.ask('published', [id, message]).catch(() => undefined))
  const methods: SupervisorMethods = {
    ...part.methods,
    common: () => common,
    ephemeralKeys,
    ready: (url) => started.resolve({ url }),
    failed: (failure) => started.resolve({ failure }),
  }
  const peer = createPeer<WorkerMethods>(channel, methods)
  child.once('disconnect', () => part.letGo())
  child.once('error', () =>
    started.resolve({ failure: { code: 'internal_error', detail: 'a worker cannot be started' } }),
  )
  child.once('exit', (code, signal) => {
    part.letGo()
    const detail = `a worker ended while it started (${signal ?? `exit code ${code}`})`
    started.resolve({ failure: { code: 'config_error', detail } })
    ended.resolve({ code, signal })
  })
  return {
    pid: child.pid,
    peer,
    started: started.promise,
    ended: ended.promise,
    kill: () => void child.kill('SIGKILL'),
  }
}

/** The channel of a worker to its supervisor. */
export function channelToSupervisor(): Channel {
  return {
    send(message, onSent) {
      if (process.connected) process.send?.(message, undefined, {}, onSent)
      else onSent(new NoAnswer('gone'))
    },
    onMessage: (listener) => void process.on('message', listener),
    onClose: (listener) => void process.once('disconnect', listener),
  }
}

/** Whether this process was started by `forkWorker`. */
export const isWorker = (): boolean => cluster.isWorker

/** The same world as `io`, with the terminal that the supervisor has. */
export const ioOfWorker = (io: Io): Io => ({ ...io, isTerminal: io.env[TERMINAL] === 'true' })

/** Ends the channel, and with it this process: its supervisor knows all that it had to say. */
export const leave = (): void => process.disconnect()
