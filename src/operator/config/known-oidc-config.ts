import type { KubeObject } from '../../kube/index.ts'
import { parseObjects } from '../../load/index.ts'
import { keyRefsIn, type Keys } from '../key-refs.ts'
import { API_SERVER, urlsIn } from '../remote-proxy/read-spec.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { bare, wordsOf } from '../webhook/validate.ts'

/** What an MCPOIDCConfig of the cluster is to us: its problems, or what it needs. */
export type KnownOidcConfig =
  | { readonly problems: readonly string[]; readonly valid?: undefined }
  | { readonly problems: readonly []; readonly valid: ValidOidcConfig }

/** What pods need for callers that it describes. */
export interface ValidOidcConfig {
  readonly configHash: string
  readonly secretKeys: Keys
  readonly caBundleKeys: Keys
  readonly urls: readonly string[]
  /** The provider is the cluster itself. */
  readonly needsClusterToken: boolean
}

/** Judges stored ones by the rules of `validate`; each spec once. */
export function createKnownOidcConfigs(apiGroup: string): (object: KubeObject) => KnownOidcConfig {
  const known = new WeakMap<object, KnownOidcConfig>()
  return (object) => {
    const key = typeof object.spec === 'object' && object.spec !== null ? object.spec : object
    const result = known.get(key) ?? judge(object, apiGroup)
    known.set(key, result)
    return result
  }
}

function judge(object: KubeObject, apiGroup: string): KnownOidcConfig {
  const loaded = parseObjects([bare(object)], { apiGroup })
  const [config] = loaded.oidcConfigs
  if (config === undefined || loaded.problems.length > 0)
    return {
      problems: loaded.problems.length === 0 ? ['not a configuration'] : [...new Set(loaded.problems.map(wordsOf))],
    }
  const { spec } = config.document
  const isCluster = spec.type === 'kubernetesServiceAccount'
  return {
    problems: [],
    valid: {
      configHash: config.configHash,
      ...keyRefsIn(spec),
      urls: [...urlsIn(spec), ...(isCluster ? [API_SERVER] : [])],
      needsClusterToken: isCluster || JSON.stringify(spec).includes(PATHS.cluster),
    },
  }
}
