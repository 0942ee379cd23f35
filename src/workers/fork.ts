import { type ChildProcess, fork, type Serializable } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { WorkerEnd, WorkerProcess } from './worker-process.ts'
import { type Io, WORKER } from '../compose/index.ts'
import type { OpenLog } from '../report/index.ts'
import type { MemoryOfWorkers } from './memory-of-workers.ts'
import type { CommonMaterial, StartFailure, SupervisorMethods, WorkerMethods } from './messages.ts'
import { type Channel, createPeer, NoAnswer } from './peer.ts'
import type { Reception, Taker } from './reception.ts'

/** Comes with a connection. */
interface Offer {
  readonly offer: number
}
interface OfferAnswer {
  readonly offered: number
  readonly isTaken: boolean
}

export interface ForkOptions {
  readonly memory: MemoryOfWorkers
  readonly reception: Reception
  readonly common: CommonMaterial
  readonly ephemeralKeys: SupervisorMethods['ephemeralKeys']
  /** Gets the worker's lines beside its own. */
  readonly log: OpenLog
  /** Whether that log is read on a terminal. */
  readonly isTerminal: boolean
  readonly env: Io['env']
}

/** V8's option for the most that one half of the room for young objects may become, in MiB, and what is asked of it here. */
const YOUNG_OPTION = '--max-semi-space-size'
const YOUNG_MIB = 8

/** SIGUSR1 opens no debugger. */
const NO_DEBUGGER = '--disable-sigusr1'

/** Options of Node for a worker: those of this process, no debugger, and less room for young objects unless configured (docs/adr/0341). */
function nodeOptions(env: Io['env']): string[] {
  const options = [...new Set([...process.execArgv, NO_DEBUGGER])]
  const given = [...options, env['NODE_OPTIONS'] ?? '']
  return given.some((option) => option.replaceAll('_', '-').includes(YOUNG_OPTION))
    ? options
    : [...options, `${YOUNG_OPTION}=${YOUNG_MIB}`]
}

/**
 * Starts this program again, with the same arguments, as a worker of this process, which gets connections from `reception`
 * as soon as it has started. The worker writes its log to a pipe, from which whole lines go to `log`.
 */
export function forkWorker(options: ForkOptions): WorkerProcess {
  const { memory, common, reception, ephemeralKeys, log, isTerminal, env } = options
  const child = fork(process.argv[1] ?? '', process.argv.slice(2), {
    env: { ...env, [WORKER]: isTerminal ? 'terminal' : 'pipe' },
    execArgv: nodeOptions(env),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
  })
  const taker = takerOf(child)
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
      reception.join(taker)
      started.resolve(undefined)
    },
    failed: (failure) => started.resolve(failure),
  }
  const peer = createPeer<WorkerMethods>(channel, methods)
  child.once('disconnect', () => part.letGo())
  child.once('error', () => started.resolve({ code: 'internal_error', detail: 'a worker cannot be started' }))
  let isDisconnected = false
  child.once('disconnect', () => (isDisconnected = true))
  // After its end and the last message that it sent.
  child.once('close', () => {
    // Node does not say so of a channel on which a connection was under way.
    if (!isDisconnected) child.emit('disconnect')
    reception.leave(taker)
  })
  child.once('exit', (code, signal) => {
    part.letGo()
    const detail = `a worker ended while it started (${signal ?? `exit code ${code}`})`
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

/** The channel of a worker to its supervisor; the worker ends with it. */
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

/** A worker as `reception` sees it. */
function takerOf(child: ChildProcess): Taker {
  let last = 0
  let answer: (isTaken: boolean) => void = () => undefined
  child.on('message', (message: Serializable) => {
    if (isOfferAnswer(message) && message.offered === last) answer(message.isTaken)
  })
  return {
    offer(socket, onAnswer) {
      answer = onAnswer
      last += 1
      // Whether it was sent shows in its answer, or in the worker's end.
      if (child.connected) child.send({ offer: last } satisfies Offer, socket, { keepOpen: true }, () => undefined)
    },
  }
}

const isOfferAnswer = (message: unknown): message is OfferAnswer =>
  typeof message === 'object' && message !== null && 'offered' in message && 'isTaken' in message

/** In a worker: `take` gets each connection that the supervisor hands over, and says whether it serves it. */
export function onConnection(take: (socket: Socket) => boolean): void {
  process.on('message', (message: unknown, socket: unknown) => {
    if (typeof message !== 'object' || message === null || !('offer' in message)) return
    // A client that has left meanwhile comes as none.
    const isTaken = socket === undefined || take(socket as Socket)
    process.send?.({ offered: message.offer, isTaken })
  })
}

/** Ends the channel, and with it this process: its supervisor knows all that it had to say. */
export const leave = (): void => process.disconnect()

/** What a worker may write without a newline; more than any line of ours. */
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
