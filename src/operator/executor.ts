import type { Clock, Log } from '../core/index.ts'
import { isNotFound, type KubeClient, KubeError } from '../kube/index.ts'
import type { Action, Plan } from './actions.ts'
import { eventObject } from './events.ts'
import { CLUSTER_TYPES } from './kinds.ts'

export interface Executor {
  /** Carries a plan out, in order; throws `KubeError` at the first write that fails, to be tried again as a whole. */
  run(plan: Plan): Promise<void>
}

/** The shell around the pure core: nothing but writes. `mayWrite` is asked before each (leadership can be lost meanwhile). */
export function createExecutor(options: {
  readonly client: KubeClient
  readonly clock: Clock
  readonly instance: string
  readonly mayWrite: () => boolean
  readonly log: Log
}): Executor {
  const { client, clock, instance, mayWrite, log } = options
  const reporter = { controller: 'extauth.dev/operator', instance }

  const carryOut = async (action: Action): Promise<void> => {
    const { type, object } = action
    const { name, namespace, uid } = object.metadata
    switch (action.do) {
      case 'apply':
        await client.apply(type, object)
        return
      case 'apply_status':
        // Gone meanwhile: there is nothing to say any more.
        await client.apply(type, object, { subresource: 'status' }).catch(ignoreGone)
        return
      case 'remove':
        return client.remove(type, namespace, name, uid)
      case 'annotate':
        await client.merge(type, namespace, name, { metadata: { annotations: action.annotations } }).catch(ignoreGone)
        return
      case 'set_finalizers': {
        const { resourceVersion } = object.metadata
        const metadata = {
          finalizers: action.finalizers,
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
        }
        await client.merge(type, namespace, name, { metadata }).catch(ignoreGone)
      }
    }
  }

  return {
    async run({ actions, events }) {
      for (const action of actions) {
        if (!mayWrite()) throw new KubeError(0, 'not the leader')
        await carryOut(action)
      }
      for (const event of events) {
        if (!mayWrite()) return
        // An event is a courtesy: the status says the same, and an event that is there already is the same event.
        await client
          .create(CLUSTER_TYPES.Event, eventObject(event, reporter, new Date(clock.now())))
          .catch((error: unknown) => {
            if (error instanceof KubeError && error.status === 409) return
            log.debug(
              { reason: event.reason, status: error instanceof KubeError ? error.status : 0 },
              'event not written',
            )
          })
      }
    },
  }
}

function ignoreGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error
  return undefined
}
