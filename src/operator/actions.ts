import type { KubeObject, ResourceType } from '../kube/index.ts'
import type { Condition } from './conditions.ts'

/** An event to emit, one per change of a condition; never contains a secret. */
export interface EventNote {
  readonly regarding: KubeObject
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly note: string
}

/** A write that the executor carries out, in order. */
export type Action =
  /** Server-side apply of exactly these fields; other owners keep theirs. `before` is the known current object. */
  | {
      readonly do: 'apply'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly before?: KubeObject | undefined
      /** Keeps the current number of replicas: an autoscaler owns it from now on. */
      readonly keepsReplicas?: boolean
    }
  | { readonly do: 'apply_status'; readonly type: ResourceType; readonly object: KubeObject }
  /**
   * All conditions of another controller's object, its own unchanged; guarded by the resource version. A server-side
   * apply would replace the list where its definition does not declare a map.
   */
  | {
      readonly do: 'set_conditions'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly conditions: readonly Condition[]
    }
  | { readonly do: 'remove'; readonly type: ResourceType; readonly object: KubeObject }
  /** Removes unexpected keys from a ConfigMap; a missing ConfigMap is not an error. */
  | {
      readonly do: 'remove_keys'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly keys: readonly string[]
    }
  /** All finalizers of an object; guarded by its resource version. */
  | {
      readonly do: 'set_finalizers'
      readonly type: ResourceType
      readonly object: KubeObject
      readonly finalizers: readonly string[]
    }

/** Writes all fields of the status that the operator owns. */
export const statusAction = (type: ResourceType, object: KubeObject, status: object): Action => {
  const { apiVersion, kind, metadata } = object
  const { name, namespace } = metadata
  const named = { name, ...(namespace === undefined ? {} : { namespace }) }
  return { do: 'apply_status', type, object: { apiVersion, kind, metadata: named, status } }
}

/** The actions that turn the observed state into the desired state. */
export interface Plan {
  readonly actions: readonly Action[]
  readonly events: readonly EventNote[]
  /** Milliseconds until the next reconciliation without an event; absent: none. */
  readonly requeueAfterMs?: number
}
