import { PURGE_RECORD } from '../../cache/index.ts'
import type { storageConfig } from '../../compose/index.ts'
import type { Services } from '../../compose/proxy/index.ts'
import type { SecretRef } from '../../resources/index.ts'
import { createSeal, createSealingKeys, StoreError, type Store } from '../../storage/index.ts'
import type { ClockNotes } from './clock.ts'
import { type CheckContext, STEP_MS, type StoreNotes } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** Clocks of replicas that share a store should be nearer to each other than this. */
const MOST_APART_MS = 2_000

/** Collects them; what several say is one line. */
export function createStoreNotes(times: ClockNotes): StoreNotes {
  const remarks = new Set<string>()
  let isBlind = false
  return {
    take(states) {
      for (const state of states) {
        if (state.clockAheadMs !== undefined) times.differs('store', state.clockAheadMs, MOST_APART_MS)
        for (const remark of state.remarks) remarks.add(remark)
        isBlind ||= state.isBlind
      }
    },
    lines: () => [
      ...[...remarks].map((remark) =>
        about('store', 'settings').warning(
          remark,
          'Set maxmemory-policy noeviction, and enough memory (docs/redis.md): what is in it was promised to somebody.',
        ),
      ),
      ...(isBlind
        ? [
            about('store', 'settings').warning(
              'its user may not ask INFO: whether it evicts is not known',
              'Give the user +info (docs/redis.md).',
            ),
          ]
        : []),
    ],
  }
}

interface CheckedStore {
  readonly scope: string
  /** In the lines. */
  readonly name: string
  /** The secrets that seal the record of purges, where the store is that of the cache. */
  readonly sealedWith?: readonly SecretRef[]
}

/** Whether a store answers, does all that is needed, and holds records that the configured secrets open. */
export async function checkStore(
  storage: () => ReturnType<typeof storageConfig>,
  { scope, name, sealedWith }: CheckedStore,
  { stores }: Pick<Services, 'stores'>,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const line = about('store', name)
  let timer: NodeJS.Timeout | undefined
  let store: Store | undefined
  try {
    const config = storage()
    store = stores.open(config, scope)
    const late = new Promise<'late'>((resolve) => (timer = setTimeout(resolve, STEP_MS * 2, 'late')))
    const refusals = await Promise.race([stores.refusals(config, scope), late])
    context.stores.take(stores.states())
    if (refusals === 'late')
      return [line.failed('no answer', 'Look at the store (addr), or at the sentinels and the master that they name.')]
    if (refusals.length > 0)
      return refusals.map((refusal) =>
        line.failed(refusal, 'Give its user the permissions in docs/redis.md, or memory.'),
      )
    if (sealedWith !== undefined && !(await opens(store, sealedWith, context)))
      return [
        line.failed(
          'the record of purges is sealed with a secret that is not in keySecretRefs',
          'Append the secret that sealed it: without it, replicas do not share credentials for five minutes.',
        ),
      ]
    return [line.ok('answers, and its user has all permissions')]
  } catch {
    const { detail } = store?.health() ?? {}
    return [
      line.failed(
        `it cannot be used${detail === undefined ? '' : `: ${detail}`}`,
        'Look at addr, or the addresses of the sentinels and masterName, at the ACL user and TLS (docs/redis.md).',
      ),
    ]
  } finally {
    clearTimeout(timer)
    await store?.close()
  }
}

/** True too where a secret cannot be read, which has a line of its own. */
async function opens(store: Store, refs: readonly SecretRef[], { secrets, clock }: CheckContext): Promise<boolean> {
  const keys = createSealingKeys(refs.map((ref) => secrets.handle(ref, 'bytes')))
  const record = await store.get(PURGE_RECORD)
  try {
    if (record !== undefined) await createSeal(keys, clock).open(PURGE_RECORD, record.value)
    return true
  } catch (error) {
    return !(error instanceof StoreError && error.kind === 'unknown_key')
  }
}
