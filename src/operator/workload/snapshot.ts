import type { KubeObject } from '../../kube/index.ts'
import type { KnownConfigs } from '../config/known-config.ts'
import type { OwnTypes, ReferringKind } from '../kinds.ts'
import type { Observed } from '../observed.ts'
import { referencedConfigs } from '../references.ts'
import { bare } from '../remote-proxy/snapshot.ts'
import { judgeObject } from '../webhook/validate.ts'
import type { WorkloadSnapshot } from './reconcile-workload.ts'

/** Everything that is known about a workload that others run. */
export function workloadSnapshot(
  kind: ReferringKind,
  object: KubeObject,
  deps: {
    readonly observed: Observed
    readonly known: KnownConfigs
    readonly types: OwnTypes
    readonly apiGroup: string
    readonly now: Date
  },
): WorkloadSnapshot {
  const stateOf = (name: string): 'valid' | 'invalid' | 'not_found' => {
    const config = deps.observed.config(object.metadata.namespace ?? 'default', name)
    if (config === undefined) return 'not_found'
    return deps.known.of(config).valid === undefined ? 'invalid' : 'valid'
  }
  return {
    object,
    type: deps.types[kind],
    problems: judgeObject(bare(object), deps.apiGroup).problems,
    references: referencedConfigs(kind, object).map((name) => ({ name, is: stateOf(name) })),
    now: deps.now,
  }
}
