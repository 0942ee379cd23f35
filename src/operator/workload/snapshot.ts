import type { KubeObject } from '../../kube/index.ts'
import { synthesizedIdentities } from '../../resources/index.ts'
import type { KnownConfigs } from '../config/known-config.ts'
import { type ConfigKind, isShared, type OwnTypes, type ReferringKind } from '../kinds.ts'
import type { Observed } from '../observed.ts'
import type { KnownSharedConfig } from '../config/known-shared-configs.ts'
import { referencesOf } from '../references.ts'
import { validateObject } from '../object-rules.ts'
import type { WorkloadSnapshot } from './reconcile-workload.ts'

/** The observed state of a workload that another controller runs. */
export function workloadSnapshot(
  kind: ReferringKind,
  object: KubeObject,
  deps: {
    readonly observed: Observed
    readonly known: KnownConfigs
    readonly knownShared: (object: KubeObject) => KnownSharedConfig
    readonly types: OwnTypes
    readonly apiGroup: string
    readonly now: Date
  },
): WorkloadSnapshot {
  const { namespace = 'default' } = object.metadata
  const stateOf = (is: ConfigKind, name: string): 'valid' | 'invalid' | 'not_found' => {
    const config = isShared(is) ? deps.observed.shared(is, namespace, name) : deps.observed.config(namespace, name)
    if (config === undefined) return 'not_found'
    const { valid } = isShared(is) ? deps.knownShared(config) : deps.known.of(config)
    return valid === undefined ? 'invalid' : 'valid'
  }
  const { loaded, problems } = validateObject(object, deps.apiGroup)
  const own = kind === 'VirtualMCPServer' ? loaded.workloads[0]?.document.ownAuthServer : undefined
  return {
    object,
    type: deps.types[kind],
    problems,
    references: referencesOf(kind, object).map(({ kind: of, name }) => ({ kind: of, name, is: stateOf(of, name) })),
    synthesized: own === undefined ? undefined : synthesizedIdentities(own),
    now: deps.now,
  }
}
