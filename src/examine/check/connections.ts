import { ConfigError, storageConfig } from '../../compose/index.ts'
import { loadModules, type Services, stateOfConnections } from '../../compose/proxy/index.ts'
import { createApiKeys, createClientDocuments, mcpUpstreamOf } from '../../connections/index.ts'
import {
  type ConnectionProvider,
  connectionsOf,
  type ResolvedConnections,
  secretsOfConnections,
  upstreamClient,
  upstreamOfConnection,
  upstreamOfLogin,
} from '../../resources/index.ts'
import {
  mcpClientAt,
  type McpProbe,
  type McpUpstreamOptions,
  probeMcp,
  type UpstreamDeps,
} from '../../upstreams/index.ts'
import { checkClients } from './clients.ts'
import { checkConnection } from './connection.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret, isUsable } from './secrets.ts'
import { checkStore } from './stores.ts'
import { checkUpstream, clientLine, isNowhere, loginLine } from './upstream.ts'

/** Tests secrets, keys and store of the connections, the logins of callers, and each provider. Registers no client. */
export function connectionTasks(
  resolved: ResolvedConnections,
  providers: readonly ConnectionProvider[],
  services: Services,
  listenUrl: string,
  context: CheckContext,
): readonly Task[] {
  const { spec, namespace } = resolved
  const { storage } = spec
  const baseUrl = spec.baseUrl ?? listenUrl
  const redirectUri = `${baseUrl}/connect/callback`
  const scope = stateOfConnections(resolved)
  const upstreams = [...spec.login.map(upstreamOfLogin), ...providers.flatMap((one) => upstreamOfConnection(one) ?? [])]
  return [
    ...secretsOfConnections(spec).map(
      (secret) => () => checkSecret(secret, `connections ${secret.path.join('.')}`, context),
    ),
    ...upstreams.map((one) => () => Promise.resolve(checkClients(one.name, [upstreamClient(one)], context))),
    () => open(services, listenUrl, context),
    ...(storage?.type === 'kvstore'
      ? [
          () =>
            checkStore(
              () => storageConfig(storage, namespace, context.secrets),
              { scope, name: 'connections' },
              services,
              context,
            ),
        ]
      : []),
    ...spec.login.map(
      (entry) => () => checkUpstream(upstreamOfLogin(entry), redirectUri, context, { loginOnly: true }),
    ),
    ...providers.map((provider) => () => checkProvider(provider, { baseUrl, redirectUri }, context)),
  ]
}

/** Opens the connections with their keys and store, as a start does. */
async function open(
  { authServers, connections, stores }: Services,
  listenUrl: string,
  { config, stores: notes }: CheckContext,
): Promise<readonly CheckResult[]> {
  const line = about('connections', 'keys and store')
  // Its directory is for one process, which may be the running proxy.
  if (config.connections?.spec.storage?.type === 'file')
    return [line.skipped('not tried: the directory belongs to the running proxy')]
  let servers: ReturnType<Services['authServers']['hold']> | undefined
  let held: ReturnType<Services['connections']['hold']> | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    const modules = await loadModules(config)
    servers = authServers.hold(config, listenUrl, modules)
    held = connections.hold(config, listenUrl, modules, servers)
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STEP_MS * 2)))
    await Promise.race([held.service?.opened(), late])
    notes.take(stores.states())
    const { isReady = false, remarks = [] } = held.service?.readiness() ?? {}
    const text = remarks.join('; ')
    if (!isReady) return [line.failed(text, 'No account can be connected or used until this is fixed.')]
    return [
      text === '' ? line.ok('usable') : line.warning(text, 'Configure keySecretRefs, and a store that replicas share.'),
    ]
  } catch (error) {
    if (error instanceof ConfigError)
      return [line.failed(error.lines.join('; '), 'The proxy does not start until this is fixed.')]
    return [line.thrown(error)]
  } finally {
    clearTimeout(timer)
    await held?.release()
    await servers?.release()
  }
}

interface Pages {
  readonly baseUrl: string
  readonly redirectUri: string
}

function checkProvider(
  provider: ConnectionProvider,
  pages: Pages,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const upstream = upstreamOfConnection(provider)
  if (upstream !== undefined) return checkUpstream(upstream, pages.redirectUri, context)
  return provider.type === 'secret' ? checkKeys(provider, context) : checkMcpProvider(provider, pages, context)
}

/** The CA certificates of a provider; a line if they are unusable. */
async function caOf(
  { name, caBundleRef }: ConnectionProvider,
  context: CheckContext,
): Promise<{ readonly ca: Buffer | undefined } | { readonly line: CheckResult }> {
  if (caBundleRef === undefined) return { ca: undefined }
  if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))
    return { line: about('upstream', name).skipped('not tried: its CA certificates are unusable') }
  return { ca: Buffer.from(context.secrets.handle(caBundleRef).current().reveal()) }
}

const upstreamDeps = ({ obtain }: CheckContext): UpstreamDeps => {
  const { clock, log, secrets, tokenFile, outbound } = obtain
  return { clock, log, secrets, tokenFile, outbound }
}

/** Sends the test request of `secret.test` with an invalid key. */
async function checkKeys(provider: ConnectionProvider, context: CheckContext): Promise<readonly CheckResult[]> {
  const { name, secret, allowPrivateIP } = provider
  const line = about('upstream.key', name)
  const test = secret?.test
  if (test === undefined) return [line.skipped('no secret.test: keys are stored untested')]
  const found = await caOf(provider, context)
  if ('line' in found) return [found.line]
  const guard = { allowPrivateIP, configuredUrls: [test.url] }
  const { lines, isConnected } = await checkConnection('upstream', test.url, context, { ca: found.ca, guard })
  if (!isConnected) return [...lines, line.skipped('not tried: no connection')]
  const keys = createApiKeys(provider, upstreamDeps(context))
  try {
    return [...lines, keyLine(line, await keys.probe(), test.expect)]
  } finally {
    await keys.close()
  }
}

function keyLine(line: ReturnType<typeof about>, status: number | undefined, expect: readonly number[]): CheckResult {
  if (status === undefined) return line.failed('secret.test.url: no response', 'Check the service.')
  if (expect.includes(status))
    return line.failed(
      `secret.test.url returns ${status} for an invalid key, which counts as valid`,
      'Set secret.test.url to an endpoint that requires the key, or correct expect.',
    )
  if (isNowhere(status))
    return line.failed(`secret.test.url returns ${status}; expected an error for an invalid key`, 'Correct the URL.')
  if (status >= 500) return line.failed(`secret.test.url returns ${status}; expected below 500`, 'Check the service.')
  return line.ok(`rejects an invalid key with ${status}`)
}

/** Follows the discovery of a remote MCP server, one line a step (connections.md §5). */
async function checkMcpProvider(
  provider: ConnectionProvider,
  { baseUrl, redirectUri }: Pages,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { name } = provider
  const line = about('upstream.resource', name)
  const target = context.config.routes.find((route) => connectionsOf(route).includes(name))?.target
  if (target === undefined) return [line.skipped('not tried: no route uses it, so the MCP server is unknown')]
  const options = mcpUpstreamOf(provider, `${target.origin}${target.path}`, createClientDocuments(baseUrl))
  const found = await caOf(provider, context)
  if (options === undefined || 'line' in found) return 'line' in found ? [found.line] : []
  const probe = probeMcp(options, redirectUri, upstreamDeps(context))
  try {
    return await mcpLines(options, { probe, ca: found.ca, redirectUri }, context)
  } finally {
    await probe.close()
  }
}

interface McpTest {
  readonly probe: McpProbe
  readonly ca: Buffer | undefined
  readonly redirectUri: string
}

async function mcpLines(
  options: McpUpstreamOptions,
  { probe, ca, redirectUri }: McpTest,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { provider, endpoint, client } = options
  const { name, allowPrivateIP } = provider
  const step = { resource: about('upstream.resource', name), server: about('upstream.server', name) }
  const guard = { allowPrivateIP: allowPrivateIP ?? false, configuredUrls: [endpoint] }
  const lines = [...(await checkConnection('upstream', endpoint, context, { ca, guard })).lines]
  let resource: Awaited<ReturnType<McpProbe['resource']>>
  try {
    const challenge = await probe.challenge()
    resource = await probe.resource(challenge)
    const from = challenge?.resourceMetadata === undefined ? 'its well-known URL' : 'the URL of its challenge'
    const scopes = resource.scopes.join(' ') || 'none'
    lines.push(
      step.resource.ok(`metadata from ${from}: authorization server ${resource.issuer}, scopes announced: ${scopes}`),
    )
  } catch (error) {
    const remedy = 'Check the target of the route: its challenge and /.well-known/oauth-protected-resource (RFC 9728).'
    return [...lines, { ...step.resource.thrown(error), remedy }]
  }
  const { issuer } = resource
  if (new URL(issuer).origin !== new URL(endpoint).origin)
    lines.push(...(await checkConnection('upstream', issuer, context, { ca, guard })).lines)
  let server: Awaited<ReturnType<McpProbe['server']>>
  try {
    server = await probe.server(issuer)
    lines.push(step.server.ok(`metadata of ${issuer} (RFC 8414), PKCE with S256`))
  } catch (error) {
    const remedy =
      'Check the metadata of the authorization server: issuer, endpoints with https, and code_challenge_methods_supported with S256.'
    return [...lines, { ...step.server.thrown(error), remedy }]
  }
  if (client === undefined) return [...lines, unregisteredLine(options, server)]
  const login = await loginLine(name, redirectUri, probe)
  lines.push(login.line)
  const clientId = client.clientAuth?.clientId ?? client.clientId
  if (login.isKnown)
    lines.push(await clientLine({ name, clientId }, redirectUri, { client: () => probe.client(server) }))
  return lines
}

function unregisteredLine(options: McpUpstreamOptions, server: Awaited<ReturnType<McpProbe['server']>>): CheckResult {
  const line = about('upstream.client', options.provider.name)
  try {
    const { kind, at } = mcpClientAt(server, options)
    return kind === 'document'
      ? line.ok(`the client is the metadata document ${at}, which the authorization server fetches`)
      : line.skipped(`not tried: the first connection registers the client at ${new URL(at).host}`)
  } catch (error) {
    return { ...line.thrown(error), remedy: 'Register a client there, and set clientId in mcp.' }
  }
}
