import type { KubeObject, ResourceType } from '../kube/index.ts'
import type { Condition } from './conditions.ts'

/** Something worth an event: one per change of a condition, never a value of a secret. */
export interface EventNote {
  readonly regarding: KubeObject
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly note: string
}

/** A write that the shell carries out, in order. */
export type Action =
  /** Server-side apply of exactly these fields; owners of others keep theirs. `before` is what is known to be there. */
  | {
      readonly do: 'apply'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly before?: KubeObject | undefined
      /** The number of pods stays as it is, whoever has set it: an autoscaler decides from now on. */
      readonly keepsReplicas?: boolean
    }
  | { readonly do: 'apply_status'; readonly type: ResourceType; readonly object: KubeObject }
  /**
   * The conditions of an object that belongs to somebody else, whole, theirs as they were; guarded by its resource version.
   * An apply would take a list away from them that their definition does not call a map.
   */
  | {
      readonly do: 'set_conditions'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly conditions: readonly Condition[]
    }
  | { readonly do: 'remove'; readonly type: ResourceType; readonly object: KubeObject }
  /** Takes keys away from a ConfigMap that somebody else has put there; one that is gone is fine. */
  | {
      readonly do: 'remove_keys'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly keys: readonly string[]
    }
  /** The finalizers of an object, whole; guarded by its resource version. */
  | {
      readonly do: 'set_finalizers'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly finalizers: readonly string[]
    }

/** Writes the status of an object, whole as far as it is ours. */
export const statusAction = (type: ResourceType, object: KubeObject, status: object): Action => {
  const { apiVersion, kind, metadata } = object
  const { name, namespace } = metadata
  const named = { name, ...(namespace === undefined ? {} : { namespace }) }
  return { do: 'apply_status', type, object: { apiVersion, kind, metadata: named, status } }
}

/** What has to be done so that what is observed becomes what is wanted. */
export interface Plan {
  readonly actions: readonly Action[]
  readonly events: readonly EventNote[]
  /** Milliseconds after which to look again without an event; absent: never. */
  readonly requeueAfterMs?: number
}
