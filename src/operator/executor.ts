import type { Clock, Log } from '../core/index.ts'
import { isNotFound, type KubeClient, KubeError, type KubeObject, type ResourceType } from '../kube/index.ts'
import type { Action, EventNote, Plan } from './actions.ts'
import { eventObject } from './events.ts'
import { CLUSTER_TYPES, GATEWAY_GROUP } from './kinds.ts'
import { APPLIED_HASH } from './wanted.ts'

export interface Executor {
  /**
   * Executes a plan in order; throws `KubeError` at the first failed write, and the whole plan is retried. Events are
   * written afterwards, concurrently with the next plans: they must not delay thousands of objects.
   */
  run(plan: Plan): Promise<void>
  /** Resolves when all events are written. */
  idle(): Promise<void>
}

/** An object that the API server rejected, with a readable reason for the status. */
export class ApplyRefused extends KubeError {
  /** `Service "crm"`. */
  readonly what: string

  constructor({ object }: Action, { status, reason, message, retryAfterSeconds }: KubeError) {
    super(status, reason, { message, retryAfterSeconds })
    this.what = `${object.kind} "${object.metadata.name}"`
  }
}

/** Status codes unrelated to the object: a retry may succeed. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([0, 404, 408, 429, 503, 504])

const NO_GATEWAY_API = new KubeError(404, 'NotFound', {
  message: 'the cluster has no Gateway API; install its definitions, or use "ingress"',
})

/** Maximum events in flight, and maximum queued ones; the status carries the information of dropped events. */
const EVENT_WRITERS = 2
const MOST_EVENTS = 10_000

/**
 * The only component that writes to the cluster. `mayWrite` is called before each write (leadership can be lost
 * meanwhile).
 */
export function createExecutor(options: {
  readonly client: KubeClient
  readonly clock: Clock
  readonly instance: string
  readonly mayWrite: () => boolean
  /** Receives the object returned by a write. */
  readonly onWritten: (type: ResourceType, object: KubeObject) => void
  /** Resolves when no write more urgent than events is pending. */
  readonly calm: () => Promise<void>
  readonly log: Log
}): Executor {
  const { client, clock, instance, mayWrite, onWritten, calm, log } = options
  const reporter = { controller: 'extauth.dev/operator', instance }

  /** An apply would adopt any object of this name; only objects of the same owner, current or former, are updated. */
  const refuseForeign = async ({ type, object, before }: Extract<Action, { do: 'apply' }>): Promise<void> => {
    const { name, namespace } = object.metadata
    const found = before ?? (await client.list(type, { namespace, fieldSelector: `metadata.name=${name}` })).items[0]
    if (found === undefined || isOurs(found, object)) return
    throw new KubeError(409, 'AlreadyExists', { message: 'it exists already and has another owner' })
  }

  /**
   * A field without an owner returns to its default, here one pod. If the operator owns the number, another field
   * manager gets it first; an autoscaler takes it from there.
   */
  const keepReplicas = async ({ type, object }: Extract<Action, { do: 'apply' }>): Promise<void> => {
    const { apiVersion, kind, metadata } = object
    const { name, namespace } = metadata
    const [found] = (await client.list(type, { namespace, fieldSelector: `metadata.name=${name}` })).items
    const { replicas } = (found?.spec ?? {}) as { readonly replicas?: number }
    if (found === undefined || replicas === undefined || !ownsReplicas(found, client.fieldManager)) return
    const kept = { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } }
    await client.apply(type, { ...kept, spec: { replicas } }, { fieldManager: `${client.fieldManager}-replicas` })
  }

  /** Returns the resulting object; undefined if it is gone. */
  const carryOut = async (action: Action): Promise<KubeObject | undefined> => {
    const { type, object } = action
    const { name, namespace, uid } = object.metadata
    switch (action.do) {
      case 'apply':
        if (action.keepsReplicas === true) await keepReplicas(action)
        return client.apply(type, object)
      case 'apply_status':
        // The object was deleted meanwhile: nothing to write.
        return client.apply(type, object, { subresource: 'status' }).catch(ignoreGone)
      case 'remove':
        await client.remove(type, namespace, name, uid)
        return undefined
      case 'remove_keys': {
        const without = Object.fromEntries(action.keys.map((key) => [key, null]))
        return client.merge(type, namespace, name, { data: without, binaryData: without }).catch(ignoreGone)
      }
      case 'set_conditions': {
        const patch = { metadata: versionOf(object), status: { conditions: action.conditions } }
        return client.merge(type, namespace, name, patch, { subresource: 'status' }).catch(ignoreGone)
      }
      default: {
        const metadata = { finalizers: action.finalizers, ...versionOf(object) }
        return client.merge(type, namespace, name, { metadata }).catch(ignoreGone)
      }
    }
  }

  const waiting: EventNote[] = []
  const writers = new Set<Promise<void>>()
  const write = async (event: EventNote): Promise<void> => {
    try {
      await client.create(CLUSTER_TYPES.Event, eventObject(event, reporter, new Date(clock.now())))
    } catch (error) {
      // An existing event of this name is the same event.
      const status = error instanceof KubeError ? error.status : 0
      if (status !== 409) log.debug({ reason: event.reason, status }, 'event not written')
    }
  }
  const drain = async (): Promise<void> => {
    for (; waiting.length > 0; await calm()) {
      const event = waiting.shift()
      if (event === undefined || !mayWrite()) return
      await write(event)
    }
  }
  const startWriter = (): void => {
    const writer: Promise<void> = drain().finally(() => writers.delete(writer))
    writers.add(writer)
  }

  return {
    async run({ actions, events }) {
      for (const action of actions) {
        try {
          if (action.do === 'apply') await refuseForeign(action)
          if (!mayWrite()) throw new KubeError(0, 'not the leader')
          const written = await carryOut(action)
          if (written !== undefined) onWritten(action.type, written)
        } catch (error) {
          if (action.do !== 'apply' || !(error instanceof KubeError)) throw error
          if (isNotFound(error) && action.type.group === GATEWAY_GROUP) throw new ApplyRefused(action, NO_GATEWAY_API)
          throw RETRYABLE_STATUSES.has(error.status) ? error : new ApplyRefused(action, error)
        }
      }
      waiting.push(...events.slice(0, MOST_EVENTS - waiting.length))
      if (waiting.length > 0 && writers.size < EVENT_WRITERS) startWriter()
    },
    async idle() {
      while (writers.size > 0) await Promise.all(writers)
    },
  }
}

interface ManagedFields {
  readonly manager?: string
  readonly operation?: string
  readonly fieldsV1?: { readonly 'f:spec'?: Readonly<Record<string, unknown>> }
}

function ownsReplicas({ metadata }: KubeObject, manager: string): boolean {
  const entries = (metadata.managedFields ?? []) as readonly ManagedFields[]
  return entries.some(
    (entry) =>
      entry.manager === manager &&
      entry.operation === 'Apply' &&
      entry.fieldsV1?.['f:spec']?.['f:replicas'] !== undefined,
  )
}

/** Makes the write fail if the object changed meanwhile. */
const versionOf = ({ metadata: { resourceVersion } }: KubeObject): { resourceVersion?: string } =>
  resourceVersion === undefined ? {} : { resourceVersion }

function ignoreGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error
  return undefined
}

function isOurs(found: KubeObject, wanted: KubeObject): boolean {
  const controllerOf = ({ metadata }: KubeObject) =>
    metadata.ownerReferences?.find(({ controller }) => controller === true)
  const owner = controllerOf(found)
  if (owner !== undefined) return owner.uid === controllerOf(wanted)?.uid
  // An object whose owner reference was removed.
  return found.metadata.annotations?.[APPLIED_HASH] !== undefined
}
