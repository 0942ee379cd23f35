import type { KubeObject } from '../../kube/index.ts'
import { keyRefsIn, type Keys } from '../key-refs.ts'
import type { MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig } from '../../resources/index.ts'
import { API_SERVER, receiversIn, urlsIn } from '../remote-proxy/read-spec.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { BySpec, validateStored, type StoredConfig } from './stored-config.ts'

/** A validated MCPOIDCConfig, MCPTelemetryConfig or MCPToolConfig of the cluster: its problems, or its requirements. */
export type KnownSharedConfig = StoredConfig<ValidSharedConfig>

/** Requirements of the pods that use it. */
export interface ValidSharedConfig {
  readonly configHash: string
  readonly secretKeys: Keys
  readonly caBundleKeys: Keys
  readonly urls: readonly string[]
  /** The cluster itself is the identity provider of callers. */
  readonly needsClusterToken: boolean
}

/** Validates stored ones, each spec once. */
export function createKnownSharedConfigs(apiGroup: string): (object: KubeObject) => KnownSharedConfig {
  const known = new BySpec<KnownSharedConfig>()
  return (object) => known.of(object, () => validate(object, apiGroup))
}

const validate = (object: KubeObject, apiGroup: string): KnownSharedConfig =>
  validateStored(object, apiGroup, (loaded) => {
    const [config] = [...loaded.oidcConfigs, ...loaded.telemetryConfigs, ...loaded.toolConfigs]
    if (config === undefined) return undefined
    const { configHash, document } = config
    return { configHash, ...keyRefsIn(document.spec), ...needsOf(document) }
  })

type Needs = Pick<ValidSharedConfig, 'urls' | 'needsClusterToken'>

function needsOf(document: MCPOIDCConfig | MCPTelemetryConfig | MCPToolConfig): Needs {
  switch (document.kind) {
    case 'MCPOIDCConfig':
      return needsOfCallers(document)
    case 'MCPTelemetryConfig':
      return needsOfTraces(document)
    default:
      return { urls: [], needsClusterToken: false }
  }
}

function needsOfCallers({ spec }: MCPOIDCConfig): Needs {
  const isCluster = spec.type === 'kubernetesServiceAccount'
  return {
    urls: [...urlsIn(spec), ...(isCluster ? [API_SERVER] : [])],
    needsClusterToken: isCluster || JSON.stringify(spec).includes(PATHS.cluster),
  }
}

const needsOfTraces = ({ spec }: MCPTelemetryConfig): Needs => ({
  urls: spec.openTelemetry === undefined ? [] : receiversIn(spec.openTelemetry),
  needsClusterToken: false,
})
