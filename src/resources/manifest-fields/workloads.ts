import { isRecord } from '../../fields/index.ts'
import { rejected, rejectedCallers, supported, ignored, type FieldTable } from './verdict.ts'

const isTrue = (value: unknown): boolean => value === true

/** Start of the text for fields about pods. */
export const IN_A_CLUSTER = 'in a cluster'

/** Fields of both kinds of remote servers. */
const REMOTE: FieldTable = {
  remoteUrl: supported(),
  externalAuthConfigRef: supported(),
  transport: ignored('both transports pass as they are'),
  groupRef: ignored('groups belong to another controller'),
  allowPrivateEndpoint: ignored(
    'the author of the manifest chooses the address of a remote server; metadata services are always refused',
  ),
  headerForward: supported(
    'a header that the type of `externalAuthConfigRef` sets is refused; callers who send one are not heard',
  ),
  caBundleRef: supported('found beside the secrets, as `<name>/<key>`'),
  toolConfigRef: supported('`toolsOverride` of the MCPToolConfig is rejected'),
}

const NO_TRAIL = rejected(
  'the audit trail is a setting of the whole proxy; expected "enabled: false", and "audit" in a ProxyConfig',
  isTrue,
)
const NO_RATES = rejected('requests are not counted here; expected none, and a limit in the gateway before the proxy')
const NO_WEBHOOKS = rejected('no webhooks are asked about requests here; expected none')

/** Fields that restrict callers in unsupported ways; other caller settings override them. */
const NOT_EVALUATED: FieldTable = {
  authzConfig: rejectedCallers('holds policies that are not evaluated here'),
  authzConfigRef: rejectedCallers('refers to policies that are not evaluated here'),
}

const SESSIONS = ignored('sessions are those of the remote server, and nothing of them is kept here')

const MCPRemoteProxy: FieldTable = {
  ...REMOTE,
  ...NOT_EVALUATED,
  oidcConfigRef: supported(),
  oidcConfig: supported('the older form of `oidcConfigRef`; type "configMap" is rejected'),
  authServerRef: supported(),
  proxyPort: supported('the same as `port`'),
  replicas: supported(IN_A_CLUSTER),
  resources: supported(IN_A_CLUSTER),
  podTemplateSpec: supported(IN_A_CLUSTER),
  serviceAccount: supported(`${IN_A_CLUSTER}; the same as \`serviceAccountName\``),
  sessionAffinity: supported(IN_A_CLUSTER),
  resourceOverrides: supported(IN_A_CLUSTER),
  'audit.enabled': supported('events go to standard output, a JSON line each; with several routes, for all of them'),
  rateLimiting: NO_RATES,
  webhookConfigRef: NO_WEBHOOKS,
  telemetryConfigRef: supported(),
  telemetry: supported(
    'the older form of `telemetryConfigRef`; its fields are those of MCPTelemetryConfig, headers as `NAME=VALUE`',
  ),
  sessionStorage: SESSIONS,
  endpointPrefix: ignored('paths are those of the remote server'),
  trustProxyHeaders: ignored('whose `Forwarded` is believed is `listen.trustedProxies` of a ProxyConfig'),
}

/** Whether a list of tools hides or rejects a tool, or references a config that may. */
const hidesTools = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.some((one) => {
    if (!isRecord(one)) return false
    const { excludeAll, filter, toolConfigRef } = one
    return excludeAll === true || (Array.isArray(filter) && filter.length > 0) || isRecord(toolConfigRef)
  })
const ALL_TOOLS = 'each backend is a route of its own with all its tools; expected none'
const OWN_PODS = ignored('its pods are run by another controller')

const VirtualMCPServer: FieldTable = {
  'incomingAuth.type': supported(),
  'incomingAuth.oidcConfigRef': supported(),
  'incomingAuth.oidcConfig': supported('the older form of `oidcConfigRef`'),
  'incomingAuth.authzConfig': NOT_EVALUATED['authzConfig'] ?? NO_WEBHOOKS,
  'incomingAuth.authzConfigRef': NOT_EVALUATED['authzConfigRef'] ?? NO_WEBHOOKS,
  outgoingAuth: supported('for the backends that `status.discoveredBackends` has'),
  authServerConfig: supported('its fields are those of `embeddedAuthServer`'),
  groupRef: ignored('groups belong to another controller'),
  embeddingServerRef: ignored('tools are not searched here'),
  telemetryConfigRef: supported('for the backends that `status.discoveredBackends` has'),
  sessionStorage: SESSIONS,
  sessionAffinity: OWN_PODS,
  replicas: OWN_PODS,
  podTemplateSpec: OWN_PODS,
  imagePullSecrets: OWN_PODS,
  serviceAccount: OWN_PODS,
  serviceType: OWN_PODS,
  passthroughHeaders: ignored('a header of a request passes unless it is a credential, or names the caller'),
  'config.aggregation.excludeAllTools': rejected(ALL_TOOLS, isTrue),
  'config.aggregation.defaultToolVisibility': rejected(ALL_TOOLS, (value) => value === 'deny'),
  'config.aggregation.tools': rejected(ALL_TOOLS, hidesTools),
  'config.audit.enabled': NO_TRAIL,
  'config.rateLimiting': NO_RATES,
  'config.incomingAuth.authz': rejected('holds policies that are not evaluated here; expected none'),
  config: ignored('several backends stay one route each: nothing is put together, composed, searched or run here'),
}

const MCPServerEntry: FieldTable = {
  ...REMOTE,
  ...NOT_EVALUATED,
  oidcConfigRef: supported(),
  oidcConfig: supported('the older form of `oidcConfigRef`; type "configMap" is rejected'),
}

const THEIRS = 'another controller runs the server and reads it'

const MCPServer: FieldTable = {
  externalAuthConfigRef: supported('it is counted, and has to be there'),
  authServerRef: supported('it is counted, and has to be there'),
  oidcConfigRef: supported('it is counted, and has to be there'),
  telemetryConfigRef: supported('it is counted, and has to be there'),
  toolConfigRef: supported('it is counted, and has to be there'),
  ...Object.fromEntries(
    'args audit authzConfig authzConfigRef backendReplicas endpointPrefix env groupRef image mcpPort permissionProfile podTemplateSpec proxyMode proxyPort rateLimiting replicas resourceOverrides resources secrets serviceAccount sessionAffinity sessionStorage transport trustProxyHeaders volumes webhookConfigRef'
      .split(' ')
      .map((name) => [name, ignored(THEIRS)]),
  ),
}

/** Support of each workload field of the other program's group. */
export const WORKLOAD_FIELDS = { MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer } as const
