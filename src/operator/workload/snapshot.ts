import type { KubeObject } from '../../kube/index.ts'
import type { KnownConfigs } from '../config/known-config.ts'
import type { ConfigKind, OwnTypes, ReferringKind } from '../kinds.ts'
import type { Observed } from '../observed.ts'
import type { KnownOidcConfig } from '../config/known-oidc-config.ts'
import { referencesOf } from '../references.ts'
import { bare, judgeObject } from '../webhook/validate.ts'
import type { WorkloadSnapshot } from './reconcile-workload.ts'

/** Everything that is known about a workload that others run. */
export function workloadSnapshot(
  kind: ReferringKind,
  object: KubeObject,
  deps: {
    readonly observed: Observed
    readonly known: KnownConfigs
    readonly knownOidc: (object: KubeObject) => KnownOidcConfig
    readonly types: OwnTypes
    readonly apiGroup: string
    readonly now: Date
  },
): WorkloadSnapshot {
  const { namespace = 'default' } = object.metadata
  const stateOf = (is: ConfigKind, name: string): 'valid' | 'invalid' | 'not_found' => {
    const isOidc = is === 'MCPOIDCConfig'
    const config = isOidc ? deps.observed.oidcConfig(namespace, name) : deps.observed.config(namespace, name)
    if (config === undefined) return 'not_found'
    const { valid } = isOidc ? deps.knownOidc(config) : deps.known.of(config)
    return valid === undefined ? 'invalid' : 'valid'
  }
  return {
    object,
    type: deps.types[kind],
    problems: judgeObject(bare(object), deps.apiGroup).problems,
    references: referencesOf(kind, object).map(({ kind: of, name }) => ({ kind: of, name, is: stateOf(of, name) })),
    now: deps.now,
  }
}
