import type { KubeObject } from '../../../src/kube/index.ts'

/** A supported object in namespace `n`. */
export const object = (kind: string, name: string, spec: object, version = 'v1beta1'): KubeObject => ({
  apiVersion: `extauth.dev/${version}`,
  kind,
  metadata: { name, namespace: 'n' },
  spec,
})

export interface Status {
  readonly [field: string]: unknown
  readonly conditions?: readonly {
    readonly type: string
    readonly status: string
    readonly reason: string
    readonly message: string
  }[]
}
export const statusOf = (one: KubeObject | undefined): Status => (one?.status ?? {}) as Status
/** As `type status reason`. */
export const conditionsOf = (one: KubeObject | undefined): string[] =>
  (statusOf(one).conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`)
export const conditionOf = (one: KubeObject | undefined, type: string) =>
  statusOf(one).conditions?.find((condition) => condition.type === type)
