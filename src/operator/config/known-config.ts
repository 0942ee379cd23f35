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
import { BySpec, judgeStored, type StoredConfig } from './stored-config.ts'

/** What an MCPExternalAuthConfig of the cluster is to us: its problems, or what it needs. */
export type KnownConfig = StoredConfig<ValidConfig>

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

/** Judges stored configs; each spec once. */
export function createKnownConfigs(apiGroup: string): KnownConfigs {
  const known = new BySpec<KnownConfig>()
  return {
    of: (object) => known.of(object, () => judge(object, apiGroup)),
    prepare: (object, patience) =>
      object === undefined || known.has(object) ? Promise.resolve('judged') : judgeMatchers(object, patience),
    giveUp: (object) => void known.set(object, { problems: [TAKES_TOO_LONG] }),
  }
}

const judge = (object: KubeObject, apiGroup: string): KnownConfig =>
  judgeStored(object, apiGroup, ({ auths: [auth] }) => {
    if (auth === undefined) return undefined
    const { spec } = auth.document
    const typed = typedSpec(spec)
    const { storeUrls, storePorts } = storeOf(spec)
    const secretKeys = new Map<string, Set<string>>()
    for (const { value: ref } of secretsNamedBy(typed))
      secretKeys.set(ref.name, (secretKeys.get(ref.name) ?? new Set()).add(ref.key))
    return {
      spec,
      configHash: auth.configHash,
      secretKeys,
      urls: [...urlsCalledBy(typed).map(({ url }) => url), ...regionalSts(spec), ...storeUrls],
      storePorts,
      needsPodIdentity: needsPodIdentity(spec),
    }
  })

/** STS where no config names it: in its region. */
const regionalSts = (spec: ExternalAuthSpec): string[] =>
  spec.type === 'cloudSts' && spec.cloudSts.stsEndpoint === undefined
    ? [`https://${stsHost(spec.cloudSts.region, spec.cloudSts)}`]
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
function storeOf(spec: ExternalAuthSpec): {
  readonly storeUrls: readonly string[]
  readonly storePorts: readonly number[]
} {
  if (spec.type !== 'embeddedAuthServer' || spec.embeddedAuthServer.storage?.type !== 'kvstore')
    return { storeUrls: [], storePorts: [] }
  const { addr, sentinelConfig: sentinel } = spec.embeddedAuthServer.storage.kvstore
  if (sentinel === undefined) return { storeUrls: addr === undefined ? [] : [`redis://${addr}`], storePorts: [] }
  const { sentinelService: service, sentinelAddrs = [] } = sentinel
  const addresses = [
    ...sentinelAddrs,
    ...(service === undefined ? [] : [`${serviceHost(service)}:${service.port ?? SENTINEL_PORT}`]),
  ]
  return { storeUrls: addresses.map((address) => `redis://${address}`), storePorts: [MASTER_PORT] }
}

const serviceHost = ({
  name,
  namespace,
}: {
  readonly name: string
  readonly namespace?: string | undefined
}): string => (namespace === undefined ? name : `${name}.${namespace}`)
