import type { Clock, Log } from '../core/index.ts'
import { isNotFound, type KubeClient, KubeError, type KubeObject, type ResourceType } from '../kube/index.ts'
import type { Action, EventNote, Plan } from './actions.ts'
import { eventObject } from './events.ts'
import { CLUSTER_TYPES, GATEWAY_GROUP } from './kinds.ts'
import { APPLIED_HASH } from './wanted.ts'

export interface Executor {
  /**
   * Carries a plan out, in order; throws `KubeError` at the first write that fails, to be tried again as a whole. Its events
   * are written afterwards, beside the next plans: with thousands of objects nobody waits for a courtesy.
   */
  run(plan: Plan): Promise<void>
  /** Resolves when all events are written. */
  idle(): Promise<void>
}

/** An object that could not be applied, and why in words for people: a status says so. */
export class ApplyRefused extends KubeError {
  /** `Service "crm"`. */
  readonly what: string

  constructor({ object }: Action, { status, reason, message, retryAfterSeconds }: KubeError) {
    super(status, reason, { message, retryAfterSeconds })
    this.what = `${object.kind} "${object.metadata.name}"`
  }
}

/** Answers that say nothing about the object: asked again, it may be taken. */
const PASSING: ReadonlySet<number> = new Set([0, 404, 408, 429, 503, 504])

const NO_GATEWAY_API = new KubeError(404, 'NotFound', {
  message: 'the cluster has no Gateway API; install its definitions, or use "ingress"',
})

/** Events on their way at the same time, and those that wait; the status says what an event beyond them would. */
const EVENT_WRITERS = 2
const MOST_EVENTS = 10_000

/** The shell around the pure core: nothing but writes. `mayWrite` is asked before each (leadership can be lost meanwhile). */
export function createExecutor(options: {
  readonly client: KubeClient
  readonly clock: Clock
  readonly instance: string
  readonly mayWrite: () => boolean
  /** Told what the server made of a write. */
  readonly onWritten: (type: ResourceType, object: KubeObject) => void
  /** Resolves when there is nothing more urgent to write than events. */
  readonly calm: () => Promise<void>
  readonly log: Log
}): Executor {
  const { client, clock, instance, mayWrite, onWritten, calm, log } = options
  const reporter = { controller: 'extauth.dev/operator', instance }

  /** An apply would take over whatever has the name; only what was made for the same owner, or was left by one, is ours. */
  const refuseForeign = async ({ type, object, before }: Extract<Action, { do: 'apply' }>): Promise<void> => {
    const { name, namespace } = object.metadata
    const found = before ?? (await client.list(type, { namespace, fieldSelector: `metadata.name=${name}` })).items[0]
    if (found === undefined || isOurs(found, object)) return
    throw new KubeError(409, 'AlreadyExists', { message: 'it is there already, and belongs to somebody else' })
  }

  /**
   * A field that nobody owns any more goes back to its default, here one pod. Where the operator owns the number, another
   * field manager gets it first; an autoscaler takes it from there.
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

  /** Gives the object as it is then; undefined where it is gone. */
  const carryOut = async (action: Action): Promise<KubeObject | undefined> => {
    const { type, object } = action
    const { name, namespace, uid } = object.metadata
    switch (action.do) {
      case 'apply':
        if (action.keepsReplicas === true) await keepReplicas(action)
        return client.apply(type, object)
      case 'apply_status':
        // Gone meanwhile: there is nothing to say any more.
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
      // An event that is there already is the same event.
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
          throw PASSING.has(error.status) ? error : new ApplyRefused(action, error)
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

/** Refuses the write when somebody else has written meanwhile. */
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
  // One whose owner reference was taken away.
  return found.metadata.annotations?.[APPLIED_HASH] !== undefined
}
