import type { KubeObject } from '../../kube/index.ts'
import { parseObjects } from '../../load/index.ts'
import { keyRefsIn, type Keys } from '../key-refs.ts'
import type { MCPOIDCConfig, MCPTelemetryConfig } from '../../resources/index.ts'
import { API_SERVER, receiversIn, urlsIn } from '../remote-proxy/read-spec.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { bare, wordsOf } from '../webhook/validate.ts'

/** What an MCPOIDCConfig or MCPTelemetryConfig of the cluster is to us: its problems, or what it needs. */
export type KnownSharedConfig =
  | { readonly problems: readonly string[]; readonly valid?: undefined }
  | { readonly problems: readonly []; readonly valid: ValidSharedConfig }

/** What pods need for it. */
export interface ValidSharedConfig {
  readonly configHash: string
  readonly secretKeys: Keys
  readonly caBundleKeys: Keys
  readonly urls: readonly string[]
  /** The provider of callers is the cluster itself. */
  readonly needsClusterToken: boolean
}

/** Judges stored ones by the rules of `validate`; each spec once. */
export function createKnownSharedConfigs(apiGroup: string): (object: KubeObject) => KnownSharedConfig {
  const known = new WeakMap<object, KnownSharedConfig>()
  return (object) => {
    const key = typeof object.spec === 'object' && object.spec !== null ? object.spec : object
    const result = known.get(key) ?? judge(object, apiGroup)
    known.set(key, result)
    return result
  }
}

function judge(object: KubeObject, apiGroup: string): KnownSharedConfig {
  const loaded = parseObjects([bare(object)], { apiGroup })
  const [config] = [...loaded.oidcConfigs, ...loaded.telemetryConfigs]
  if (config === undefined || loaded.problems.length > 0)
    return {
      problems: loaded.problems.length === 0 ? ['not a configuration'] : [...new Set(loaded.problems.map(wordsOf))],
    }
  const { configHash, document } = config
  const { spec } = document
  const needs = document.kind === 'MCPOIDCConfig' ? needsOfCallers(document) : needsOfTraces(document)
  return { problems: [], valid: { configHash, ...keyRefsIn(spec), ...needs } }
}

function needsOfCallers({ spec }: MCPOIDCConfig): Pick<ValidSharedConfig, 'urls' | 'needsClusterToken'> {
  const isCluster = spec.type === 'kubernetesServiceAccount'
  return {
    urls: [...urlsIn(spec), ...(isCluster ? [API_SERVER] : [])],
    needsClusterToken: isCluster || JSON.stringify(spec).includes(PATHS.cluster),
  }
}

const needsOfTraces = ({ spec }: MCPTelemetryConfig): Pick<ValidSharedConfig, 'urls' | 'needsClusterToken'> => ({
  urls: spec.openTelemetry === undefined ? [] : receiversIn(spec.openTelemetry),
  needsClusterToken: false,
})
