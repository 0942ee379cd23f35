import { createStores, type RedisConfig, type Store, type Stores } from '../../../src/storage/index.ts'
import { createManualClock, createRecordingLog, createRecordingMetrics } from '../ports.ts'

export interface Replica {
  readonly stores: Stores
  readonly store: Store
  readonly log: ReturnType<typeof createRecordingLog>
  readonly metrics: ReturnType<typeof createRecordingMetrics>
}

let scopes = 0
/** A scope that no other test uses. */
export const newScope = (): string => `test/scope-${process.pid}-${(scopes += 1)}`

/** A replica of the product: its own stores and connections. */
export function createReplica(kvstore: RedisConfig, scope: string): Replica {
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const stores = createStores({ clock: createManualClock(), log, metrics, random: Math.random })
  return { stores, store: stores.open({ type: 'kvstore', kvstore }, scope), log, metrics }
}
