import type { KubeObject } from '../../kube/index.ts'
import { keyRefsIn, type Keys } from '../key-refs.ts'
import type { MCPOIDCConfig, MCPTelemetryConfig } from '../../resources/index.ts'
import { API_SERVER, receiversIn, urlsIn } from '../remote-proxy/read-spec.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { BySpec, judgeStored, type StoredConfig } from './stored-config.ts'

/** What an MCPOIDCConfig or MCPTelemetryConfig of the cluster is to us: its problems, or what it needs. */
export type KnownSharedConfig = StoredConfig<ValidSharedConfig>

/** What pods need for it. */
export interface ValidSharedConfig {
  readonly configHash: string
  readonly secretKeys: Keys
  readonly caBundleKeys: Keys
  readonly urls: readonly string[]
  /** The provider of callers is the cluster itself. */
  readonly needsClusterToken: boolean
}

/** Judges stored ones; each spec once. */
export function createKnownSharedConfigs(apiGroup: string): (object: KubeObject) => KnownSharedConfig {
  const known = new BySpec<KnownSharedConfig>()
  return (object) => known.of(object, () => judge(object, apiGroup))
}

const judge = (object: KubeObject, apiGroup: string): KnownSharedConfig =>
  judgeStored(object, apiGroup, (loaded) => {
    const [config] = [...loaded.oidcConfigs, ...loaded.telemetryConfigs]
    if (config === undefined) return undefined
    const { configHash, document } = config
    const needs = document.kind === 'MCPOIDCConfig' ? needsOfCallers(document) : needsOfTraces(document)
    return { configHash, ...keyRefsIn(document.spec), ...needs }
  })

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
