/** Methods of the other process, by name. */
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>

/** A channel between two processes, like `ChildProcess` and `process`. */
export interface Channel {
  /** False or an error if the other process has exited. */
  send(message: object, onSent: (error: Error | null) => void): void
  onMessage(listener: (message: unknown) => void): void
  onClose(listener: () => void): void
}

/** No response: the other process has exited or timed out. */
export class NoAnswer extends Error {
  readonly reason: 'gone' | 'late'
  constructor(reason: 'gone' | 'late') {
    super(reason === 'gone' ? 'the other process has exited' : 'the other process did not respond in time')
    this.name = 'NoAnswer'
    this.reason = reason
  }
}

/** An error of the other process: its name and plain fields. */
export class RemoteError extends Error {
  readonly members: Readonly<Record<string, unknown>>
  constructor(name: string, message: string, members: Readonly<Record<string, unknown>>) {
    super(message)
    this.name = name
    this.members = members
  }
}

interface Ask {
  readonly id: number
  readonly ask: string
  readonly args: readonly unknown[]
}
interface Reply {
  readonly reply: number
  readonly value?: unknown
  readonly error?: {
    readonly name: string
    readonly message: string
    readonly members: Readonly<Record<string, unknown>>
  }
}

/** The other process, as a set of methods. */
export interface Peer<Theirs extends Methods> {
  /**
   * Calls a method and waits up to `deadlineMs`, by default 5 s. Throws `NoAnswer`, or `RemoteError` for the other's
   * error.
   */
  ask<K extends keyof Theirs & string>(
    name: K,
    args: Parameters<Theirs[K]>,
    deadlineMs?: number,
  ): Promise<Awaited<ReturnType<Theirs[K]>>>
}

const DEADLINE_MS = 5_000
/** Fields of an error that may be sent: codes and messages of this program. */
const FIELDS = ['kind', 'code', 'detail', 'lines'] as const

/** Sends requests and responses over a channel between two processes, each in order. Ignores other messages. */
export function createPeer<Theirs extends Methods>(channel: Channel, methods: Methods): Peer<Theirs> {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let asked = 0
  let isGone = false

  const answer = async ({ id, ask, args }: Ask): Promise<void> => {
    const ignore = (): void => undefined
    try {
      const method = Object.hasOwn(methods, ask) ? methods[ask] : undefined
      if (method === undefined) throw new RangeError(`no method ${ask}`)
      channel.send({ reply: id, value: await method(...(args as never[])) } satisfies Reply, ignore)
    } catch (error) {
      channel.send({ reply: id, error: serializable(error) } satisfies Reply, ignore)
    }
  }

  channel.onMessage((message) => {
    if (isAsk(message)) void answer(message)
    else if (isReply(message)) {
      const one = waiting.get(message.reply)
      waiting.delete(message.reply)
      if (message.error === undefined) one?.resolve(message.value)
      else one?.reject(new RemoteError(message.error.name, message.error.message, message.error.members))
    }
  })
  channel.onClose(() => {
    isGone = true
    for (const one of waiting.values()) one.reject(new NoAnswer('gone'))
    waiting.clear()
  })

  const ask = async (name: string, args: readonly unknown[], deadlineMs: number): Promise<unknown> => {
    if (isGone) throw new NoAnswer('gone')
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const id = ++asked
    waiting.set(id, { resolve, reject })
    const timer = setTimeout(() => reject(new NoAnswer('late')), deadlineMs)
    channel.send({ id, ask: name, args } satisfies Ask, (error) => {
      if (error !== null) reject(new NoAnswer('gone'))
    })
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      waiting.delete(id)
    }
  }
  return {
    ask: (name, args, deadlineMs = DEADLINE_MS) =>
      ask(name, args, deadlineMs) as Promise<Awaited<ReturnType<Theirs[typeof name]>>>,
  }
}

const isAsk = (message: unknown): message is Ask =>
  typeof message === 'object' && message !== null && 'ask' in message && 'id' in message && 'args' in message

const isReply = (message: unknown): message is Reply =>
  typeof message === 'object' && message !== null && 'reply' in message

/** Omits cause and stack, which may quote external text. */
function serializable(error: unknown): NonNullable<Reply['error']> {
  if (!(error instanceof Error)) return { name: typeof error, message: '', members: {} }
  const members = FIELDS.flatMap((name) => {
    const value = (error as unknown as Record<string, unknown>)[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { name: error.name, message: error.message, members: Object.fromEntries(members) }
}
