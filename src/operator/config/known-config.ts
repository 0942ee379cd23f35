import type { KubeObject } from '../../kube/index.ts'
import {
  chainOf,
  type ExternalAuthSpec,
  type MatcherValidation,
  validateMatchers,
  type TimeLimit,
  secretsNamedBy,
  stsHost,
  typedSpec,
  urlsCalledBy,
} from '../../resources/index.ts'
import { storeNeeds } from '../store-needs.ts'
import { BySpec, validateStored, type StoredConfig } from './stored-config.ts'

/** A validated MCPExternalAuthConfig of the cluster: its problems, or its requirements. */
export type KnownConfig = StoredConfig<ValidConfig>

export interface ValidConfig {
  readonly spec: ExternalAuthSpec
  readonly configHash: string
  /** Keys of the Secrets that it references, by Secret. */
  readonly secretKeys: ReadonlyMap<string, ReadonlySet<string>>
  /** URLs that the proxy calls for it. */
  readonly urls: readonly string[]
  /** Ports of the store and its sentinels, if it has one. */
  readonly storePorts: readonly number[]
  /** It uses EKS pod identity, from an agent at a link-local address. */
  readonly needsPodIdentity: boolean
}

export interface KnownConfigs {
  /** The validated config; validates synchronously unless it was prepared. */
  of(object: KubeObject): KnownConfig
  /** Validates the expensive part in small slices. Call `of` only after it, or after `giveUp`. */
  prepare(object: KubeObject | undefined, patience: TimeLimit): Promise<MatcherValidation>
  /** Validation takes too long: the config counts as invalid until its spec changes. */
  giveUp(object: KubeObject): void
}

/** The problem of a config whose validation was aborted. */
export const TAKES_TOO_LONG = 'its matchers take too long to validate, expected fewer or simpler ones'

/** Validates stored configs, each spec once. */
export function createKnownConfigs(apiGroup: string): KnownConfigs {
  const known = new BySpec<KnownConfig>()
  return {
    of: (object) => known.of(object, () => validate(object, apiGroup)),
    prepare: (object, patience) =>
      object === undefined || known.has(object) ? Promise.resolve('done') : validateMatchers(object, patience),
    giveUp: (object) => void known.set(object, { problems: [TAKES_TOO_LONG] }),
  }
}

const validate = (object: KubeObject, apiGroup: string): KnownConfig =>
  validateStored(object, apiGroup, ({ auths: [auth] }) => {
    if (auth === undefined) return undefined
    const { spec } = auth.document
    const typed = typedSpec(spec)
    const { storeUrls, storePorts } = storeNeeds(
      spec.type === 'embeddedAuthServer' ? spec.embeddedAuthServer.storage : undefined,
    )
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

/** The regional STS endpoint if no config names one. */
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
