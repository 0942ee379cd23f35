import type { KubeObject } from '../../kube/index.ts'
import { readCallersText } from '../../load/index.ts'
import { keyRefsIn } from '../key-refs.ts'
import { formatProblems } from '../object-rules.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { CALLERS_KEY } from './request.ts'

/** Requirements of the callers section in a ConfigMap. */
export interface SidecarCallers {
  /** Keys of Secrets, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Keys of ConfigMaps with CA certificates, by ConfigMap. */
  readonly caBundleKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Callers are service accounts: the API server returns its keys to authenticated pods. */
  readonly needsClusterToken: boolean
}

/** Maximum characters of an `auth` section: parsing blocks other reviews. */
const MOST_CHARACTERS = 256 * 1024

/**
 * Validates the ConfigMap of callers like `extauth validate`: returns what the sidecar needs for it, or the problem.
 */
export function readCallers(configMap: KubeObject): { readonly problem: string } | SidecarCallers {
  const data = (configMap['data'] ?? {}) as Readonly<Record<string, unknown>>
  const text = data[CALLERS_KEY]
  if (typeof text !== 'string') return { problem: `has no key ${CALLERS_KEY}` }
  if (text.length > MOST_CHARACTERS) return { problem: `has more than ${MOST_CHARACTERS} characters` }
  const { config, problems } = readCallersText(text, CALLERS_KEY)
  if (problems !== undefined) return { problem: formatProblems(problems).join('; ') }
  const { secretKeys, caBundleKeys } = keyRefsIn(config)
  return { secretKeys, caBundleKeys, needsClusterToken: JSON.stringify(config).includes(PATHS.cluster) }
}
