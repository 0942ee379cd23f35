import { PURGE_RECORD } from '../../cache/index.ts'
import type { storageConfig } from '../../compose/index.ts'
import type { Services } from '../../compose/proxy/index.ts'
import type { SecretRef } from '../../resources/index.ts'
import { createSeal, createSealingKeys, StoreError, type Store } from '../../storage/index.ts'
import type { ClockNotes } from './clock.ts'
import { type CheckContext, STEP_MS, type StoreNotes } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** Tolerated clock difference between a store and its replicas. */
const MOST_APART_MS = 2_000

/** Collects notes; equal ones become one line. */
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
          'Set maxmemory-policy noeviction, with enough memory (docs/redis.md): eviction loses sessions.',
        ),
      ),
      ...(isBlind
        ? [
            about('store', 'settings').warning(
              'the user lacks the permission for INFO; the eviction policy is unknown',
              'Grant the user +info (docs/redis.md).',
            ),
          ]
        : []),
    ],
  }
}

interface CheckedStore {
  readonly scope: string
  /** Name in the lines. */
  readonly name: string
  /** The secrets that seal the purge log, if the store is the cache's. */
  readonly sealedWith?: readonly SecretRef[]
}

/** Tests that a store responds, grants all needed permissions, and holds records sealed with the configured secrets. */
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
      return [line.failed('no response', 'Check the store (addr), or the sentinels and their master.')]
    if (refusals.length > 0)
      return refusals.map((refusal) =>
        line.failed(refusal, 'Grant the user the permissions in docs/redis.md, or add memory.'),
      )
    if (sealedWith !== undefined && !(await opens(store, sealedWith, context)))
      return [
        line.failed(
          'the purge log is sealed with a secret that is not in keySecretRefs',
          'Append that secret; without it, replicas do not share credentials for five minutes.',
        ),
      ]
    return [line.ok('responds; the user has all permissions')]
  } catch {
    const { detail } = store?.health() ?? {}
    return [
      line.failed(
        `unusable${detail === undefined ? '' : `: ${detail}`}`,
        'Check addr or the sentinels and masterName, the ACL user, and TLS (docs/redis.md).',
      ),
    ]
  } finally {
    clearTimeout(timer)
    await store?.close()
  }
}

/** Also true if a secret is unreadable, which has its own line. */
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
