import {
  checkProbeOf,
  clientsOf,
  connectionsOf,
  credentialOf,
  forwardedSecrets,
  secretsNamedBy,
  type ResolvedRoute,
} from '../../resources/index.ts'
import type { Services } from '../../compose/proxy/index.ts'
import { storageConfig } from '../../compose/index.ts'
import { auditTasks } from './audit.ts'
import { authServerTasks } from './auth-server.ts'
import { checkCaller } from './caller.ts'
import { checkClients } from './clients.ts'
import { connectionTasks } from './connections.ts'
import type { CheckContext } from './context.ts'
import { checkCredential } from './credential.ts'
import { checkFile, checkPair } from './files.ts'
import { providerTasks } from './providers.ts'
import { checkReceiver } from './receiver.ts'
import { checkResource } from './resource.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret } from './secrets.ts'
import { checkStore } from './stores.ts'
import { checkMcp, checkTarget } from './target.ts'
import { untested } from './tools.ts'

/** A heading and the tests below it, in order. */
export interface Section {
  readonly title: string
  /** Name of the route; undefined for the process. */
  readonly route: string | undefined
  readonly tasks: readonly Task[]
}

/** Tests of one route. */
export function routeSection(
  route: ResolvedRoute,
  listenUrl: string | undefined,
  context: CheckContext,
  services: Services,
): Section {
  const { name, auth, target, callers, headerForward, telemetry } = route
  return {
    // Without the query, which may contain a key.
    title: `route ${name} → ${target.origin}${target.path} (${auth.type})`,
    route: name,
    tasks: [
      ...secretsNamedBy(auth).map(
        (secret) => () => checkSecret(secret, `${auth.name} ${secret.path.join('.')}`, context),
      ),
      ...forwardedSecrets(headerForward).map(
        (secret) => () => checkSecret(secret, `${name} ${secret.path.join('.')}`, context),
      ),
      () => Promise.resolve(checkClients(auth.name, clientsOf(auth), context)),
      ...(callers.mode === 'oauth' ? providerTasks(callers, context) : []),
      async () => (await checkCaller(route, context)).lines,
      () => checkResource(route, listenUrl, context),
      () => backendLines(route, context),
      ...(telemetry === undefined ? [] : [() => checkReceiver(telemetry, context, services)]),
    ],
  }
}

/** Credential, then backend, which needs the credential. */
async function backendLines(route: ResolvedRoute, context: CheckContext): Promise<readonly CheckResult[]> {
  const target = checkTarget(route, context)
  const { caller } = await checkCaller(route, context)
  const { lines, credential } = await checkCredential(route, caller, context)
  const { lines: targetLines, isConnected } = await target
  const mcp = about('mcp', route.target.host)
  const all = [...lines, ...targetLines]
  if (isConnected && credential !== undefined) return [...all, ...(await checkMcp(route, credential, context))]
  const missing = isConnected ? whyNot(route, caller !== undefined) : 'not tried: no connection'
  return [...all, mcp.skipped(missing), ...untested(route, missing)]
}

function whyNot({ auth }: ResolvedRoute, hasCaller: boolean): string {
  if (credentialOf(auth) !== 'caller') return 'not tried: no credential'
  if (auth.upstream?.isConnection === true)
    return `needs a caller with a connected account ("${auth.upstream.provider}")`
  if (checkProbeOf(auth) === 'session' || auth.upstream !== undefined) return 'needs a logged-in user'
  return hasCaller ? 'not tried: no credential' : 'needs --token-file'
}

/** Tests of the process besides its routes. */
export function processSection(context: CheckContext, services: Services): Section {
  const { config } = context
  const { listen, admin, sessionKeySecretRef, cache, namespace, audit } = config
  const tasks: Task[] = []
  const { tls } = listen
  const nowMs = context.clock.now()
  if (tls !== undefined) tasks.push(() => Promise.resolve(checkPair(tls.certFile, tls.keyFile, 'listen.tls', nowMs)))
  const { tokenFile } = admin
  if (tokenFile !== undefined)
    tasks.push(() => Promise.resolve(checkFile({ holds: 'token', path: tokenFile }, 'admin.tokenFile', nowMs)))
  if (sessionKeySecretRef !== undefined)
    tasks.push(() => checkSecret({ value: sessionKeySecretRef, holds: 'bytes' }, 'sessionKeySecretRef', context))
  if (audit !== undefined) tasks.push(...auditTasks(audit, context))
  if (cache !== undefined) {
    for (const value of cache.keySecretRefs)
      tasks.push(() => checkSecret({ value, holds: 'bytes' }, 'cache.keySecretRefs', context))
    tasks.push(() =>
      checkStore(
        () => storageConfig(cache.storage, namespace, context.secrets),
        { scope: `${namespace}/${cache.name}`, name: cache.name, sealedWith: cache.keySecretRefs },
        services,
        context,
      ),
    )
  }
  return { title: 'proxy', route: undefined, tasks }
}

/** Tests of the embedded authorization servers. */
export const authServerSections = (context: CheckContext, services: Services, listenUrl: string): readonly Section[] =>
  context.config.authServers.map((server) => ({
    title: `authorization server ${server.name}`,
    route: undefined,
    tasks: authServerTasks(server, services, listenUrl, context),
  }))

/** Tests of the connections, with `--route` those that the route uses. */
export function connectionSections(
  context: CheckContext,
  services: Services,
  listenUrl: string,
  route: string | undefined,
): readonly Section[] {
  const { connections, routes } = context.config
  if (connections === undefined) return []
  const used = new Set(routes.filter(({ name }) => name === route).flatMap(connectionsOf))
  const providers = connections.spec.providers.filter(({ name }) => route === undefined || used.has(name))
  if (providers.length === 0) return []
  const tasks = connectionTasks(connections, providers, services, listenUrl, context)
  return [{ title: 'connections', route: undefined, tasks }]
}
