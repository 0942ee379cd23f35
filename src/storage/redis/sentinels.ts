import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { StoreError } from '../port.ts'
import type { Endpoint, RedisConfig } from './config.ts'
import { openConnection } from './connection.ts'
import { withDeadline } from './deadline.ts'
import { NAME_NOT_RESOLVED, ReplyError } from './reply-errors.ts'

/** Time for the other sentinels after the first response. */
const GRACE_MS = 1_000
/** Maximum number of queried sentinels. */
const MOST_SENTINELS = 32

interface Sentinel extends Endpoint {
  readonly serverName: string
}

interface Answer {
  /** Undefined if the sentinel does not know the master. */
  readonly master: Endpoint | undefined
  readonly others: readonly Sentinel[]
}

export type SentinelConfig = Pick<
  RedisConfig,
  'sentinels' | 'sentinelTls' | 'masterName' | 'dialTimeoutMs' | 'readTimeoutMs' | 'writeTimeoutMs'
>

export interface Sentinels {
  /**
   * The master named by the majority of responding sentinels. Throws `StoreError` `unavailable` with a cause if none
   * responds, none knows the name, or there is no majority.
   */
  master(): Promise<Endpoint>
}

/**
 * Queries all configured sentinels, because one may be wrong (partitioned, stale, compromised): credentials go to the
 * majority's master. Discovered sentinels are queried only if no configured one responds, so that one cannot outvote
 * the rest with invented names.
 */
export function createSentinels(config: SentinelConfig): Sentinels {
  let discovered: readonly Sentinel[] = []
  let asking: Promise<Endpoint> | undefined

  const ask = async ({ host, port, serverName }: Sentinel): Promise<Answer> => {
    const { sentinelTls: tls, masterName } = config
    const connection = await openConnection({ ...config, host, port, serverName, tls })
    try {
      const [master, others] = await Promise.all([
        connection.call(['sentinel', 'get-master-addr-by-name', masterName]),
        connection.call(['sentinel', 'sentinels', masterName]).catch(() => []),
      ])
      return { master: endpointOf(master), others: sentinelsOf(others) }
    } finally {
      connection.destroy()
    }
  }

  const vote = async (sentinels: readonly Sentinel[]): Promise<Endpoint> => {
    const failures: unknown[] = []
    const asked = sentinels.map((sentinel) =>
      ask(sentinel).catch((error: unknown) => {
        failures.push(error)
        throw error
      }),
    )
    const answers = await collect(asked)
    if (answers.length === 0) throw new Silence(failures, config.sentinels)
    const named = answers.flatMap(({ master }) => master ?? [])
    if (named.length === 0) throw new StoreError('unavailable', { cause: 'no sentinel knows the master name' })
    const winner = majority(named, named.length)
    if (winner === undefined) throw new StoreError('unavailable', { cause: 'the sentinels name different masters' })
    const next = answers.filter(({ master }) => isSame(master, winner)).flatMap(({ others }) => others)
    if (next.length > 0) discovered = distinct(next)
    return winner
  }

  const find = async (): Promise<Endpoint> => {
    const configured = await addresses(config.sentinels, config.dialTimeoutMs)
    try {
      return await vote(configured)
    } catch (error) {
      const fallback = discovered.filter((other) => !configured.some((known) => isSame(known, other)))
      if (!(error instanceof Silence) || fallback.length === 0) throw error
      return await vote(fallback)
    }
  }

  return {
    master() {
      asking ??= find().finally(() => (asking = undefined))
      return asking
    },
  }
}

/** No sentinel responded, with the cause of one: rejections before outages. */
class Silence extends StoreError {
  constructor(failures: readonly unknown[], configured: readonly Endpoint[]) {
    const known = failures.filter((failure) => failure instanceof StoreError)
    const refusal = known.find((failure) => failure instanceof ReplyError)
    const why = refusal ?? known[0]
    if (refusal !== undefined) {
      super('unavailable', { ...pick(refusal), cause: `a sentinel rejects the query (${refusal.code})` })
    } else if (why === undefined) {
      const cause = 'the names of the sentinels have no address'
      super('unavailable', { cause, code: NAME_NOT_RESOLVED, endpoint: configured[0] })
    } else {
      super('unavailable', { ...pick(why), cause: 'no sentinel responds' })
    }
  }
}

const pick = ({ code, endpoint }: StoreError) => ({ code, endpoint })

/** The responses, as soon as a majority agrees, else when all have arrived or the grace time is over. */
function collect(asked: readonly Promise<Answer>[]): Promise<readonly Answer[]> {
  return new Promise((resolve) => {
    const answers: Answer[] = []
    let outstanding = asked.length
    let grace: ReturnType<typeof setTimeout> | undefined
    const finish = () => {
      clearTimeout(grace)
      resolve([...answers])
    }
    const settled = (answer: Answer | undefined) => {
      outstanding -= 1
      if (answer !== undefined) {
        answers.push(answer)
        grace ??= setTimeout(finish, GRACE_MS)
      }
      const named = answers.flatMap(({ master }) => master ?? [])
      if (outstanding === 0 || majority(named, asked.length) !== undefined) finish()
    }
    for (const answer of asked) answer.then(settled, () => settled(undefined))
    if (asked.length === 0) finish()
  })
}

function majority(named: readonly Endpoint[], voters: number): Endpoint | undefined {
  return named.find((one) => named.filter((other) => isSame(one, other)).length * 2 > voters)
}

function isSame(one: Endpoint | undefined, other: Endpoint | undefined): boolean {
  return one?.host === other?.host && one?.port === other?.port
}

function distinct(sentinels: readonly Sentinel[]): Sentinel[] {
  const found: Sentinel[] = []
  for (const one of sentinels) {
    if (found.length < MOST_SENTINELS && !found.some((other) => isSame(one, other))) found.push(one)
  }
  return found
}

/** All addresses of all configured names: a service name has several sentinels. */
async function addresses(sentinels: readonly Endpoint[], timeoutMs: number): Promise<Sentinel[]> {
  const late = () => new StoreError('unavailable', { cause: 'the names of the sentinels have no address' })
  const resolve = async ({ host, port }: Endpoint): Promise<Sentinel[]> => {
    if (isIP(host) !== 0) return [{ host, port, serverName: host }]
    const found = await withDeadline(lookup(host, { all: true }), timeoutMs, late).catch(() => [])
    return found.map(({ address }) => ({ host: address, port, serverName: host }))
  }
  return distinct((await Promise.all(sentinels.map(resolve))).flat())
}

function endpointOf(reply: unknown): Endpoint | undefined {
  if (!Array.isArray(reply)) return undefined
  const [host, port] = reply.map(String)
  return host === undefined || host === '' ? undefined : withPort(host, port)
}

function withPort(host: string, port: string | undefined): Endpoint | undefined {
  const number = Number(port)
  return Number.isInteger(number) && number > 0 && number < 65_536 ? { host, port: number } : undefined
}

/** `SENTINEL SENTINELS`: a flat list of names and values per sentinel. */
function sentinelsOf(reply: unknown): Sentinel[] {
  if (!Array.isArray(reply)) return []
  return reply.flatMap((item: unknown) => {
    if (!Array.isArray(item)) return []
    const words = item.map(String)
    const field = (name: string) => {
      const at = words.findIndex((word, index) => index % 2 === 0 && word === name)
      return at === -1 ? undefined : words[at + 1]
    }
    const host = field('ip')
    const endpoint = host === undefined || host === '' ? undefined : withPort(host, field('port'))
    return endpoint === undefined ? [] : [{ ...endpoint, serverName: endpoint.host }]
  })
}
