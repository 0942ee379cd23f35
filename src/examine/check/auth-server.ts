import { type ResolvedAuthServer, secretsNamedBy, upstreamClient } from '../../resources/index.ts'
import { ConfigError, storageConfig } from '../../compose/index.ts'
import { loadModules, type Services } from '../../compose/proxy/index.ts'
import { assertionTasks } from './assertions.ts'
import { checkClients } from './clients.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret } from './secrets.ts'
import { checkStore } from './stores.ts'
import { upstreamTasks } from './upstream.ts'

/**
 * Tests secrets and store of an embedded authorization server, its upstream providers, and the issuers of accepted
 * assertions.
 */
export function authServerTasks(
  server: ResolvedAuthServer,
  services: Services,
  listenUrl: string,
  context: CheckContext,
): readonly Task[] {
  const { spec } = server
  const secrets: Task[] = secretsNamedBy({ type: 'embeddedAuthServer' as const, spec }).map(
    (secret) => () => checkSecret(secret, `${server.name} ${secret.path.join('.')}`, context),
  )
  const tokens: Task[] = spec.upstreamProviders.map(
    (provider) => () =>
      Promise.resolve(checkClients(`${server.name} ${provider.name}`, [upstreamClient(provider)], context)),
  )
  const { storage } = spec
  const stores: Task[] =
    storage?.type === 'kvstore'
      ? [
          () =>
            checkStore(
              () => storageConfig(storage, server.namespace, context.secrets),
              { scope: server.name, name: server.name },
              services,
              context,
            ),
        ]
      : []
  return [
    ...secrets,
    ...tokens,
    () => open(server, services, listenUrl, context),
    ...stores,
    ...upstreamTasks(server, listenUrl, context),
    ...assertionTasks(server, context),
  ]
}

/** Opens the server with its keys and store, as a start does. */
async function open(
  server: ResolvedAuthServer,
  { authServers, stores }: Services,
  listenUrl: string,
  { config, stores: notes }: CheckContext,
): Promise<readonly CheckResult[]> {
  const line = about('authserver', server.name)
  let held: ReturnType<Services['authServers']['hold']> | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    const own = { ...config, authServers: [server] }
    held = authServers.hold(own, listenUrl, await loadModules(own))
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STEP_MS * 2)))
    await Promise.race([Promise.all(held.all.map((one) => one.opened())), late])
    notes.take(stores.states())
    return held.all.map((one) => {
      const { isReady, remarks } = one.readiness()
      const text = remarks.join('; ')
      if (!isReady) return line.failed(text, 'Users cannot log in until this is fixed.')
      return text === ''
        ? line.ok('keys and store usable')
        : line.warning(text, 'Configure the secrets and a store that replicas share.')
    })
  } catch (error) {
    // An unusable key or chain: the same message and location as from `proxy` and `validate`.
    if (error instanceof ConfigError)
      return [line.failed(error.lines.join('; '), 'The proxy does not start until this is fixed.')]
    return [line.thrown(error)]
  } finally {
    clearTimeout(timer)
    await held?.release()
  }
}
