import { isRecord } from '../../fields/index.ts'
import { refused, refusedCallers, runs, told, type FieldTable } from './verdict.ts'

const isTrue = (value: unknown): boolean => value === true

/** How the rows of what is about pods begin. */
export const IN_A_CLUSTER = 'in a cluster'

/** Fields that both kinds of remote servers have. */
const REMOTE: FieldTable = {
  remoteUrl: runs(),
  externalAuthConfigRef: runs(),
  transport: told('both transports pass as they are'),
  groupRef: told('groups belong to another controller'),
  allowPrivateEndpoint: told(
    'the address of a remote server is whoever writes the manifest to choose; metadata services are refused always',
  ),
  headerForward: runs(
    'a header that the type of `externalAuthConfigRef` sets is refused; callers who send one are not heard',
  ),
  caBundleRef: runs('found beside the secrets, as `<name>/<key>`'),
}

const NO_TRAIL = refused(
  'no audit trail is kept here, and who relies on one must not lose it unseen; expected "enabled: false", and the log of the proxy',
  isTrue,
)
const NO_RATES = refused('requests are not counted here; expected none, and a limit in the gateway before the proxy')
const NO_WEBHOOKS = refused('no webhooks are asked about requests here; expected none')

/** Fields that restrict callers or tools in ways that nothing here can; whoever says otherwise who may call takes them on. */
const NOT_EVALUATED: FieldTable = {
  authzConfig: refusedCallers('holds policies that are not evaluated here'),
  authzConfigRef: refusedCallers('refers to policies that are not evaluated here'),
  toolConfigRef: refusedCallers('filters tools, which is not done here'),
}

const SESSIONS = told('sessions are those of the remote server, and nothing of them is kept here')

const MCPRemoteProxy: FieldTable = {
  ...REMOTE,
  ...NOT_EVALUATED,
  oidcConfigRef: runs(),
  oidcConfig: runs('the earlier way to say it; of type "configMap" it is refused'),
  authServerRef: runs(),
  proxyPort: runs('the same as `port`'),
  replicas: runs(IN_A_CLUSTER),
  resources: runs(IN_A_CLUSTER),
  podTemplateSpec: runs(IN_A_CLUSTER),
  serviceAccount: runs(`${IN_A_CLUSTER}; the same as \`serviceAccountName\``),
  sessionAffinity: runs(IN_A_CLUSTER),
  resourceOverrides: runs(IN_A_CLUSTER),
  'audit.enabled': NO_TRAIL,
  rateLimiting: NO_RATES,
  webhookConfigRef: NO_WEBHOOKS,
  telemetryConfigRef: runs(),
  telemetry: runs('the earlier way to say it; its fields are those of MCPTelemetryConfig, headers as `NAME=VALUE`'),
  sessionStorage: SESSIONS,
  endpointPrefix: told('paths are those of the remote server'),
  trustProxyHeaders: told('whose `Forwarded` is believed is `listen.trustedProxies` of a ProxyConfig'),
}

/** A list of tools of which one hides or refuses something, or refers to what may. */
const hidesTools = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.some((one) => {
    if (!isRecord(one)) return false
    const { excludeAll, filter, toolConfigRef } = one
    return excludeAll === true || (Array.isArray(filter) && filter.length > 0) || isRecord(toolConfigRef)
  })
const ALL_TOOLS = 'each backend is a route of its own with all its tools; expected none'
const OWN_PODS = told('its pods are run by another controller')

const VirtualMCPServer: FieldTable = {
  'incomingAuth.type': runs(),
  'incomingAuth.oidcConfigRef': runs(),
  'incomingAuth.oidcConfig': runs('the earlier way to say it'),
  'incomingAuth.authzConfig': NOT_EVALUATED['authzConfig'] ?? NO_WEBHOOKS,
  'incomingAuth.authzConfigRef': NOT_EVALUATED['authzConfigRef'] ?? NO_WEBHOOKS,
  outgoingAuth: runs('for the backends that `status.discoveredBackends` has'),
  authServerConfig: runs('its fields are those of `embeddedAuthServer`'),
  groupRef: told('groups belong to another controller'),
  embeddingServerRef: told('tools are not searched here'),
  telemetryConfigRef: runs('for the backends that `status.discoveredBackends` has'),
  sessionStorage: SESSIONS,
  sessionAffinity: OWN_PODS,
  replicas: OWN_PODS,
  podTemplateSpec: OWN_PODS,
  imagePullSecrets: OWN_PODS,
  serviceAccount: OWN_PODS,
  serviceType: OWN_PODS,
  passthroughHeaders: told('a header of a request passes unless it is a credential, or names the caller'),
  'config.aggregation.excludeAllTools': refused(ALL_TOOLS, isTrue),
  'config.aggregation.defaultToolVisibility': refused(ALL_TOOLS, (value) => value === 'deny'),
  'config.aggregation.tools': refused(ALL_TOOLS, hidesTools),
  'config.audit.enabled': NO_TRAIL,
  'config.rateLimiting': NO_RATES,
  'config.incomingAuth.authz': refused('holds policies that are not evaluated here; expected none'),
  config: told('several backends stay one route each: nothing is put together, composed, searched or run here'),
}

const MCPServerEntry: FieldTable = {
  ...REMOTE,
  ...NOT_EVALUATED,
  oidcConfigRef: runs(),
  oidcConfig: runs('the earlier way to say it; of type "configMap" it is refused'),
}

const THEIRS = 'another controller runs the server and reads it'

const MCPServer: FieldTable = {
  externalAuthConfigRef: runs('it is counted, and has to be there'),
  authServerRef: runs('it is counted, and has to be there'),
  oidcConfigRef: runs('it is counted, and has to be there'),
  telemetryConfigRef: runs('it is counted, and has to be there'),
  ...Object.fromEntries(
    'args audit authzConfig authzConfigRef backendReplicas endpointPrefix env groupRef image mcpPort permissionProfile podTemplateSpec proxyMode proxyPort rateLimiting replicas resourceOverrides resources secrets serviceAccount sessionAffinity sessionStorage toolConfigRef transport trustProxyHeaders volumes webhookConfigRef'
      .split(' ')
      .map((name) => [name, told(THEIRS)]),
  ),
}

/** What becomes of each field of a workload that was written for the group that these kinds come from. */
export const WORKLOAD_FIELDS = { MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer } as const
