/** All keys of a kind in Redis. */
export interface KeyKind {
  readonly kind: string
  readonly count: number
  /** The longest time to live among them, in seconds. */
  readonly longestSeconds: number
  /** How many have no end. */
  readonly endless: number
}

/** Milliseconds to live; -1: without an end, as Redis has it. */
export type KeyLife = readonly [key: string, ms: number]

/** Reasons for a key. */
export interface Occasions {
  /** Who may connect accounts. */
  readonly people: number
  /** Accounts that were connected. */
  readonly connected: number
  /** Callers with a credential of their own; also those who logged in. */
  readonly lives: number
  /** Also those that came to nothing. */
  readonly logins: number
}

const [MINUTE, DAY] = [60, 86_400]

/**
 * How long the keys of a kind may live, in seconds, and how many there may be of those that outlive a run (docs/redis.md). A
 * collection has four sets, and one that was left behind by a failover may be there beside the next.
 */
const KINDS: Readonly<Record<string, readonly [seconds: number, most?: (occasions: Occasions) => number]>> = {
  'v:credential': [DAY, ({ lives }) => 3 * lives + 100],
  'v:purges': [2 * DAY, () => 4],
  'v:mark': [30 * DAY, () => 4],
  'v:probe': [MINUTE],
  'v:session': [30 * DAY, ({ logins, connected }) => logins + connected],
  'v:family': [30 * DAY, ({ logins }) => logins],
  'v:code': [10 * MINUTE],
  'v:login': [10 * MINUTE],
  'v:connection': [360 * DAY, ({ people }) => people],
  'v:person': [360 * DAY, ({ people }) => people],
  'v:ticket': [10 * MINUTE],
  'v:prompt': [MINUTE],
  'v:client': [90 * DAY, ({ logins }) => logins],
  'v:upstream-client': [90 * DAY, () => 4],
  'v:assertion': [DAY],
  'v:ended': [DAY, () => 16],
  c: [90 * DAY, () => 16],
  l: [2 * MINUTE],
}

/** Kinds by `v:<name>`, or by what the key begins with after its resource; the most frequent first. */
export function kindsOf(keys: readonly KeyLife[]): readonly KeyKind[] {
  const kinds = Map.groupBy(keys, ([key]) => {
    const [form = '', name = ''] = key.replace(/^extauth:\{[^}]*\}:/, '').split(':')
    return form === 'v' ? `v:${name}` : form
  })
  return [...kinds]
    .map(([kind, own]) => ({
      kind,
      count: own.length,
      longestSeconds: Math.round(own.reduce((longest, [, ms]) => Math.max(longest, ms), 0) / 1_000),
      endless: own.filter(([, ms]) => ms === -1).length,
    }))
    .toSorted((one, other) => other.count - one.count)
}

/** Problems: keys without expiry, with a late one, or more keys than reasons. */
export function* keyProblems(kinds: readonly KeyKind[], occasions: Occasions): Generator<string> {
  for (const { kind, count, longestSeconds, endless } of kinds) {
    const [seconds, most] = KINDS[kind] ?? []
    if (seconds === undefined) yield `keys in Redis of an unknown kind: ${kind}`
    else if (longestSeconds > seconds) yield `keys ${kind} in Redis for ${longestSeconds} s, at most ${seconds}`
    if (endless > 0) yield `${endless} keys ${kind} in Redis without an end`
    const bound = most?.(occasions) ?? Infinity
    if (count > bound) yield `${count} keys ${kind} in Redis, there was occasion for ${bound}`
  }
}
