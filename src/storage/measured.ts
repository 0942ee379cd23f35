import { type Metrics, monotonicNow } from '../core/index.ts'
import { StoreError, type Store } from './port.ts'
import { troubleOf } from './trouble.ts'

/** Measures the operations of a store and their results. */
export function measureStore(store: Store, metrics: Metrics): Store {
  const operations = metrics.counter('extauth_store_operations_total', 'Operations of the store by outcome.', [
    'operation',
    'outcome',
  ])
  const seconds = metrics.histogram(
    'extauth_store_operation_seconds',
    'How long operations of the store took.',
    ['operation'],
    [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
  )

  const failures = metrics.counter(
    'extauth_store_failures_total',
    'Failed operations of the store by cause: late, OOM, NOPERM, NOAUTH, NOREPLICAS, name_not_resolved, …',
    ['cause'],
  )

  const measured = <T>(operation: string, work: Promise<T>): Promise<T> => {
    const startedAt = monotonicNow()
    const ended = (outcome: string) => {
      operations.with(operation, outcome).add()
      seconds.with(operation).observe((monotonicNow() - startedAt) / 1_000)
    }
    work.then(
      () => ended('ok'),
      (error: unknown) => {
        ended(error instanceof StoreError ? error.kind : 'error')
        failures.with(troubleOf(error).cause).add()
      },
    )
    return work
  }

  return {
    get: (key) => measured('get', store.get(key)),
    put: (...args) => measured('put', store.put(...args)),
    putIfAbsent: (...args) => measured('put_if_absent', store.putIfAbsent(...args)),
    take: (key) => measured('take', store.take(key)),
    compareAndSet: (...args) => measured('compare_and_set', store.compareAndSet(...args)),
    delete: (...keys) => measured('delete', store.delete(...keys)),
    admit: (...args) => measured('admit', store.admit(...args)),
    touch: (...args) => measured('touch', store.touch(...args)),
    remove: (...args) => measured('remove', store.remove(...args)),
    members: (...args) => measured('members', store.members(...args)),
    lock: (...args) => measured('lock', store.lock(...args)),
    getOrLock: (...args) => measured('get_or_lock', store.getOrLock(...args)),
    publish: (...args) => measured('publish', store.publish(...args)),
    subscribe: (...args) => store.subscribe(...args),
    health: () => store.health(),
    close: () => store.close(),
  }
}
