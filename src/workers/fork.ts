import { type ChildProcess, fork, type Serializable, spawn, type SpawnOptions } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { WorkerEnd, WorkerProcess } from './worker-process.ts'
import { type Io, WORKER } from '../compose/index.ts'
import { IS_EXECUTABLE } from '../core/index.ts'
import type { OpenLog } from '../report/index.ts'
import type { MemoryOfWorkers } from './memory-of-workers.ts'
import type { CommonMaterial, StartFailure, SupervisorMethods, WorkerMethods } from './messages.ts'
import { type Channel, createPeer, NoAnswer } from './peer.ts'
import type { ConnectionDispatcher, WorkerSlot } from './connection-dispatcher.ts'

/** Sent with a connection. */
interface Offer {
  readonly offer: number
}
interface OfferAnswer {
  readonly offered: number
  readonly isTaken: boolean
}

export interface ForkOptions {
  readonly memory: MemoryOfWorkers
  readonly dispatcher: ConnectionDispatcher
  readonly common: CommonMaterial
  readonly ephemeralKeys: SupervisorMethods['ephemeralKeys']
  /** Receives the worker's log lines. */
  readonly log: OpenLog
  /** Whether the log is written to a terminal. */
  readonly isTerminal: boolean
  readonly env: Io['env']
}

/** V8's maximum size of one semi-space in MiB, and the value for workers. */
const YOUNG_OPTION = '--max-semi-space-size'
const YOUNG_MIB = 8

/** Disables the debugger on SIGUSR1. */
const NO_DEBUGGER = '--disable-sigusr1'

/**
 * Node options of a worker: those of this process, no debugger, and a smaller young generation unless configured
 * (docs/adr/0341).
 */
function nodeOptions(env: Io['env']): string[] {
  const options = [...new Set([...process.execArgv, NO_DEBUGGER])]
  const given = [...options, env['NODE_OPTIONS'] ?? '']
  return given.some((option) => option.replaceAll('_', '-').includes(YOUNG_OPTION))
    ? options
    : [...options, `${YOUNG_OPTION}=${YOUNG_MIB}`]
}

/** Starts this program again with the same arguments and a channel. */
function startAgain(env: Io['env']): ChildProcess {
  const options = { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], serialization: 'advanced' } satisfies SpawnOptions
  const args = process.argv.slice(2)
  // The executable contains its Node options.
  return IS_EXECUTABLE
    ? spawn(process.execPath, args, options)
    : fork(process.argv[1] ?? '', args, { ...options, execArgv: nodeOptions(env) })
}

/**
 * Starts this program with the same arguments as a worker process, which joins `dispatcher` when started. Forwards
 * complete lines of its log pipe to `log`.
 */
export function forkWorker(options: ForkOptions): WorkerProcess {
  const { memory, common, dispatcher, ephemeralKeys, log, isTerminal, env } = options
  const child = startAgain({ ...env, [WORKER]: isTerminal ? 'terminal' : 'pipe' })
  const slot = slotOf(child)
  // The audit trail, if it goes to standard output.
  if (child.stdout !== null) passLines(child.stdout, (lines) => void process.stdout.write(lines))
  if (child.stderr !== null) passLines(child.stderr, (lines) => log.pass(lines))

  const channel: Channel = {
    send(message, onSent) {
      if (child.connected) child.send(message, (error) => onSent(error))
      else onSent(new NoAnswer('gone'))
    },
    onMessage: (listener) => void child.on('message', listener),
    onClose: (listener) => void child.once('disconnect', listener),
  }
  const started = Promise.withResolvers<StartFailure | undefined>()
  const ended = Promise.withResolvers<WorkerEnd>()
  const part = memory.partOf((id, message) => void peer.ask('published', [id, message]).catch(() => undefined))
  const methods: SupervisorMethods = {
    ...part.methods,
    common: () => common,
    ephemeralKeys,
    ready() {
      dispatcher.join(slot)
      started.resolve(undefined)
    },
    failed: (failure) => started.resolve(failure),
  }
  const peer = createPeer<WorkerMethods>(channel, methods)
  child.once('disconnect', () => part.release())
  child.once('error', () => started.resolve({ code: 'internal_error', detail: 'worker failed to start' }))
  let isDisconnected = false
  child.once('disconnect', () => (isDisconnected = true))
  // After its exit and its last message.
  child.once('close', () => {
    // Node does not emit this for a channel with a connection in transit.
    if (!isDisconnected) child.emit('disconnect')
    dispatcher.leave(slot)
  })
  child.once('exit', (code, signal) => {
    part.release()
    const detail = `worker exited during startup (${signal ?? `exit code ${code}`})`
    started.resolve({ code: 'config_error', detail })
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

/** The channel of a worker to its supervisor. The worker exits when it closes. */
export function channelToSupervisor(): Channel {
  process.once('disconnect', () => process.exit())
  return {
    send(message, onSent) {
      if (process.connected) process.send?.(message, undefined, {}, onSent)
      else onSent(new NoAnswer('gone'))
    },
    onMessage: (listener) => void process.on('message', listener),
    onClose: (listener) => void process.once('disconnect', listener),
  }
}

/** The slot of a worker in the dispatcher. */
function slotOf(child: ChildProcess): WorkerSlot {
  let last = 0
  let answer: (isTaken: boolean) => void = () => undefined
  child.on('message', (message: Serializable) => {
    if (isOfferAnswer(message) && message.offered === last) answer(message.isTaken)
  })
  return {
    offer(socket, onAnswer) {
      answer = onAnswer
      last += 1
      // The worker's response, or its exit, shows whether it arrived.
      if (child.connected) child.send({ offer: last } satisfies Offer, socket, { keepOpen: true }, () => undefined)
    },
  }
}

const isOfferAnswer = (message: unknown): message is OfferAnswer =>
  typeof message === 'object' && message !== null && 'offered' in message && 'isTaken' in message

/** In a worker: `take` receives each dispatched connection and returns whether it accepts it. */
export function onConnection(take: (socket: Socket) => boolean): void {
  process.on('message', (message: unknown, socket: unknown) => {
    if (typeof message !== 'object' || message === null || !('offer' in message)) return
    // The socket is undefined if the client has disconnected.
    const isTaken = socket === undefined || take(socket as Socket)
    process.send?.({ offered: message.offer, isTaken })
  })
}

/** Closes the channel, and with it this process. The supervisor has received all messages. */
export const leave = (): void => process.disconnect()

/** What a worker may write without a newline; more than any log line. */
const LONGEST_LINE = 1024 * 1024

/** Hands on what `stream` carries in whole lines, so that those of several processes don't run into each other. */
export function passLines(stream: Readable, onLines: (lines: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const text = rest + decoder.write(chunk)
    const end = text.lastIndexOf('\n') + 1
    rest = text.slice(end)
    if (end > 0) onLines(text.slice(0, end))
    if (rest.length <= LONGEST_LINE) return
    onLines(`${rest}\n`)
    rest = ''
  })
  // The last words of a process that crashed end without one.
  stream.on('end', () => {
    if (rest !== '') onLines(`${rest}\n`)
  })
}
