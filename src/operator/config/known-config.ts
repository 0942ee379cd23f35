import type { KubeObject } from '../../kube/index.ts'
import {
  chainOf,
  type ExternalAuthSpec,
  type Judged,
  judgeMatchers,
  type Patience,
  secretsNamedBy,
  stsHost,
  typedSpec,
  urlsCalledBy,
} from '../../resources/index.ts'
import { parseObjects } from '../../load/index.ts'
import { wordsOf } from '../webhook/validate.ts'

/** What an MCPExternalAuthConfig of the cluster is to us: its problems, or what it needs. */
export type KnownConfig =
  | { readonly problems: readonly string[]; readonly valid?: undefined }
  | { readonly problems: readonly []; readonly valid: ValidConfig }

export interface ValidConfig {
  readonly spec: ExternalAuthSpec
  readonly configHash: string
  /** Keys of Secrets that it names, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** URLs that the proxy will call for it. */
  readonly urls: readonly string[]
  /** Ports of the store and its sentinels, where it has one. */
  readonly storePorts: readonly number[]
  /** It takes the identity that EKS gives to pods, from an agent at a link-local address. */
  readonly needsPodIdentity: boolean
}

export interface KnownConfigs {
  /** What is known of it; judged at once where nobody has prepared that. */
  of(object: KubeObject): KnownConfig
  /** Does the long part of judging it, a little at a time. `of` comes after `judged` only, or after `giveUp`. */
  prepare(object: KubeObject | undefined, patience: Patience): Promise<Judged>
  /** It takes too long: it counts as not valid, until its spec changes. */
  giveUp(object: KubeObject): void
}

/** What is said of a config that nobody waits for any longer. */
export const TAKES_TOO_LONG = 'its matchers take too long to be judged, expected fewer or simpler ones'

/** Judges a stored config by the rules of `validate`. Kept per spec: what is observed holds the same one until it changes. */
export function createKnownConfigs(apiGroup: string): KnownConfigs {
  const known = new WeakMap<object, KnownConfig>()
  const keyOf = (object: KubeObject): object =>
    typeof object.spec === 'object' && object.spec !== null ? object.spec : object
  return {
    of(object) {
      const key = keyOf(object)
      let result = known.get(key)
      if (result === undefined) known.set(key, (result = judge(object, apiGroup)))
      return result
    },
    prepare: (object, patience) =>
      object === undefined || known.has(keyOf(object)) ? Promise.resolve('judged') : judgeMatchers(object, patience),
    giveUp: (object) => void known.set(keyOf(object), { problems: [TAKES_TOO_LONG] }),
  }
}

function judge(object: KubeObject, apiGroup: string): KnownConfig {
  // Status is ours and metadata the server's: only what a person wrote is judged.
  const { apiVersion, kind, metadata, spec } = object
  const { name, namespace } = metadata
  const loaded = parseObjects([{ apiVersion, kind, metadata: { name, namespace }, spec }], { apiGroup })
  const [auth] = loaded.auths
  if (auth === undefined || loaded.problems.length > 0)
    return {
      problems: loaded.problems.length === 0 ? ['not a configuration'] : [...new Set(loaded.problems.map(wordsOf))],
    }
  const typed = typedSpec(auth.document.spec)
  const secretKeys = new Map<string, Set<string>>()
  for (const { value: ref } of secretsNamedBy(typed))
    secretKeys.set(ref.name, (secretKeys.get(ref.name) ?? new Set()).add(ref.key))
  const urls = [...urlsCalledBy(typed).map(({ url }) => url), ...regionalSts(auth.document.spec)]
  return {
    problems: [],
    valid: {
      spec: auth.document.spec,
      configHash: auth.configHash,
      secretKeys,
      urls,
      storePorts: storePortsOf(auth.document.spec),
      needsPodIdentity: needsPodIdentity(auth.document.spec),
    },
  }
}

/** STS where no config names it: in its region. */
const regionalSts = (spec: ExternalAuthSpec): string[] =>
  spec.type === 'cloudSts' && spec.cloudSts.stsEndpoint === undefined
    ? [`https://${stsHost(spec.cloudSts.region, {})}`]
    : []

function needsPodIdentity(spec: ExternalAuthSpec): boolean {
  if (spec.type !== 'cloudSts') return false
  const { source } = spec.cloudSts
  const ambient = source?.type === 'ambient' ? source : source?.through?.source
  return ambient !== undefined && chainOf(ambient).includes('podIdentity')
}

const SENTINEL_PORT = 26_379
const MASTER_PORT = 6379

/** Sentinels name the master's port at run time; the usual one is let through, others by `spec.egress`. */
function storePortsOf(spec: ExternalAuthSpec): number[] {
  if (spec.type !== 'embeddedAuthServer') return []
  const { storage } = spec.embeddedAuthServer
  if (storage?.type !== 'kvstore') return []
  const { addr, sentinelConfig: sentinel } = storage.kvstore
  const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))
  if (sentinel === undefined) return addr === undefined ? [] : [portOf(addr)]
  const named = (sentinel.sentinelAddrs ?? []).map(portOf)
  const service = sentinel.sentinelService === undefined ? [] : [sentinel.sentinelService.port ?? SENTINEL_PORT]
  return [MASTER_PORT, ...named, ...service].filter((port) => Number.isInteger(port) && port > 0)
}
