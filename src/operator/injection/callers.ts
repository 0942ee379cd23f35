import type { KubeObject } from '../../kube/index.ts'
import { readCallersText } from '../../load/index.ts'
import { keyRefsIn } from '../key-refs.ts'
import { formatProblems } from '../object-rules.ts'
import { PATHS } from '../remote-proxy/remote-proxy.ts'
import { CALLERS_KEY } from './request.ts'

/** What the sidecar needs for the callers that a ConfigMap says. */
export interface SidecarCallers {
  /** Keys of Secrets, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Keys of ConfigMaps that hold CA certificates, by ConfigMap. */
  readonly caBundleKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** Callers are service accounts: the API server shows its keys to who has a token. */
  readonly needsClusterToken: boolean
}

/** Characters of an `auth` section: more than any has, and read while others wait. */
const MOST_CHARACTERS = 256 * 1024

/** Judges the ConfigMap of callers as `extauth validate` does: what the sidecar needs for it, or why it can't be used. */
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
