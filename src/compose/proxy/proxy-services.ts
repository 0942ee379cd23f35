import type { Common } from './proxy-common.ts'
import { type CredentialCache, createCredentialCache } from '../../cache/index.ts'
import type { Clock, Credential, Log } from '../../core/index.ts'
import { type ConnectionBudget, createOutbound, createProtections, type EgressProxy } from '../../net/index.ts'
import { createDecisionLog, createIdentityPool, type DecisionLog } from '../../obtain/cloud-sts/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import { openSecrets, type OpenSecrets } from '../../secrets/index.ts'
import { createStores, type Stores } from '../../storage/index.ts'
import { createProtocolMemory, type ProtocolMemory } from '../../authorize/index.ts'
import { type AuthServers, createAuthServers } from './auth-servers.ts'
import { boundOfBackends } from './backends.ts'
import { type Authenticators, createAuthenticators } from './authenticators.ts'
import { type NamedFiles, openNamedFiles } from '../named-files.ts'
import { describeEgress, egressFrom } from '../egress.ts'
import { createTracing, type ReceiverDeps, type Tracing } from './tracing.ts'
import { countLostLines, type ReportingLog, openMetrics, type OpenMetrics } from '../../report/index.ts'
import { createNamedSeries, withSeries } from '../named-series.ts'
import { type MemoryShares, memorySharesOf } from '../memory-limit.ts'
import type { SharedCacheSlot } from './shared-cache.ts'
import { stsEndpoints } from '../sts-endpoint.ts'

/** What lives as long as the process, whatever configuration is in force. */
export interface Services {
  readonly tracing: Tracing
  /** With what receivers of traces are reached; what is sent to them is not followed itself. */
  readonly receivers: ReceiverDeps
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OpenMetrics
  readonly egressProxy: EgressProxy | undefined
  /** Counts the connections to backends of all configurations. */
  readonly backendConnections: ConnectionBudget
  readonly secrets: OpenSecrets
  readonly namedFiles: NamedFiles
  readonly authenticators: Authenticators
  readonly authServers: AuthServers
  readonly cache: CredentialCache<Credential>
  /** With whom that cache is shared, as the configuration in force says. */
  readonly sharing: SharedCacheSlot
  readonly stores: Stores
  readonly decisions: DecisionLog
  /** What was seen of backends by routes with rules. */
  readonly protocol: ProtocolMemory
  /** Identities of the process at AWS, held by the configurations that use them. */
  readonly identities: ReturnType<typeof createIdentityPool>
  /** For the sources of credentials, without what each configuration holds for itself. */
  readonly obtain: Omit<
    ObtainDeps,
    'secrets' | 'caCertificate' | 'tokenFile' | 'identities' | 'decisions' | 'onMatcherError'
  >
}

export interface ServicesOptions {
  /** Follows what is asked of other services. */
  readonly tracing?: Tracing | undefined
  readonly secretsDirectory: string
  readonly maxCredentials: number | undefined
  /** How much of the memory is for what is remembered. Default: the shares of one process. */
  readonly memory?: Pick<MemoryShares, 'callersBytes' | 'credentialsBytes'>
  readonly stsEndpoint?: string | undefined
  readonly showClaims?: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock: Clock
  /** Of circuits and rests of other services. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock
  /** Where state is kept. Default: where the configuration says. */
  readonly stores?: Stores
  readonly common?: Pick<Common, 'memory' | 'ephemeralKeys'> | undefined
}

/** Makes them; nothing is opened or fetched. Throws `config_error` for an STS endpoint that is none. */
export function createServices(options: ServicesOptions): Services {
  const { clock, steadyClock, log, env, common, memory = memorySharesOf({}) } = options
  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'connections go out through an egress proxy')
  const sharing: SharedCacheSlot = { current: undefined }
  const cache = createCredentialCache<Credential>({
    clock,
    metrics,
    random: Math.random,
    maxEntries: options.maxCredentials,
    maxBytes: memory.credentialsBytes,
    weigh: bytesOfCredential,
    shared: () => sharing.current,
  })
  const protections = createProtections({ clock, steadyClock, metrics })
  const clocks = steadyClock === undefined ? { clock } : { clock, steadyClock }
  const series = createNamedSeries(metrics)
  const egress = egressProxy === undefined ? {} : { egressProxy }
  const plain: ObtainDeps['outbound'] = (wanted) =>
    withSeries(series, wanted.name, createOutbound({ ...wanted, ...clocks, metrics, protections, ...egress }))
  const { tracing = createTracing(false) } = options
  const outbound: ObtainDeps['outbound'] = (wanted) => tracing.traced(plain(wanted), wanted.name)
  const secrets = openSecrets(options.secretsDirectory, { log, metrics, clock })
  const namedFiles = openNamedFiles(log, env)
  const ofCallers = { clock, log, metrics, outbound, series, secrets, namedFiles }
  const stores = options.stores ?? createStores({ clock, log, metrics, random: Math.random, memory: common?.memory })
  return {
    tracing,
    receivers: { outbound: plain, secrets, namedFiles, log },
    clock,
    log,
    metrics,
    egressProxy,
    backendConnections: boundOfBackends(),
    secrets,
    namedFiles,
    authenticators: createAuthenticators({ ...ofCallers, rememberedBytes: memory.callersBytes }),
    authServers: createAuthServers({ ...ofCallers, stores, ephemeralKeys: common?.ephemeralKeys }),
    cache,
    sharing,
    stores,
    decisions: createDecisionLog({ clock, showClaims: options.showClaims ?? false }),
    protocol: createProtocolMemory(),
    identities: createIdentityPool(),
    obtain: {
      clock,
      log,
      metrics,
      random: Math.random,
      cache,
      outbound,
      env,
      ...stsEndpoints(options.stsEndpoint, env),
    },
  }
}

/** About what a credential holds that its entry in the cache does not. */
function bytesOfCredential(credential: Credential): number {
  if (credential.kind === 'header') return credential.value.reveal().length
  if (credential.kind === 'aws') return AWS_BYTES + (credential.sessionToken?.reveal().length ?? 0)
  return 0
}

/** Key id, secret and the signing key of a day. */
const AWS_BYTES = 200
