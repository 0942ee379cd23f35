import { createUpstream } from '../../authserver/index.ts'
import { Secret } from '../../core/index.ts'
import { type ResolvedAuthServer, secretsNamedBy } from '../../resources/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { type AuthServers, loadRooms } from '../../compose/proxy/index.ts'
import { checkConnection } from './connection.ts'
import { type CheckContext, STEP_MS } from './context.ts'
import { checkCertificateText } from './files.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret } from './secrets.ts'

type UpstreamProvider = ResolvedAuthServer['spec']['upstreamProviders'][number]

/** Secrets and store of an embedded authorization server, and the upstream providers that its users are sent to. */
export function authServerTasks(
  server: ResolvedAuthServer,
  authServers: AuthServers,
  listenUrl: string,
  context: CheckContext,
): readonly Task[] {
  const { spec } = server
  const secrets: Task[] = secretsNamedBy({ type: 'embeddedAuthServer' as const, spec }).map(({ path, value }) => () => {
    // Keys that nobody types may be any bytes.
    const form = path[0] === 'hmacSecretRefs' ? 'bytes' : 'text'
    return Promise.resolve(checkSecret(value, `${server.name} ${path.join('.')}`, context, form))
  })
  return [
    ...secrets,
    () => open(server, authServers, listenUrl, context.config),
    ...spec.upstreamProviders.map((provider) => () => checkUpstream(provider, context)),
  ]
}

/** Opens the server with its keys and store, as a start would. */
async function open(
  server: ResolvedAuthServer,
  authServers: AuthServers,
  listenUrl: string,
  config: ResolvedProxy,
): Promise<readonly CheckResult[]> {
  const line = about('authserver', server.name)
  let held: ReturnType<AuthServers['hold']> | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    const own = { ...config, authServers: [server] }
    held = authServers.hold(own, listenUrl, await loadRooms(own))
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STEP_MS * 2)))
    await Promise.race([Promise.all(held.all.map((one) => one.opened())), late])
    return held.all.map((one) => {
      const { isReady, remarks } = one.readiness()
      const text = remarks.join('; ')
      if (!isReady) return line.failed(text, 'Users cannot log in before this is mended.')
      return text === ''
        ? line.ok('keys and store are usable')
        : line.warning(text, 'Name the secrets and a store that replicas share.')
    })
  } catch (error) {
    return [line.thrown(error)]
  } finally {
    clearTimeout(timer)
    await held?.release()
  }
}

async function checkUpstream(provider: UpstreamProvider, context: CheckContext): Promise<readonly CheckResult[]> {
  const { name, oidcConfig, oauth2Config, caBundleRef, allowPrivateIP } = provider
  const line = about('upstream', name)
  const urls =
    oidcConfig === undefined
      ? [oauth2Config?.authorizationEndpoint, oauth2Config?.tokenEndpoint, oauth2Config?.userInfo.endpointUrl]
      : [oidcConfig.issuerUrl]
  const configuredUrls = urls.filter((url) => url !== undefined)
  const lines: CheckResult[] = []
  let ca: Buffer | undefined
  if (caBundleRef !== undefined) {
    const secret = checkSecret(caBundleRef, `caBundleRef of ${name}`, context)
    if (secret.some(({ check, status }) => check === 'secret' && status === 'failed'))
      return [...secret, line.skipped('without its authorities nothing is sent')]
    ca = Buffer.from(context.secrets.handle(caBundleRef).current().reveal())
    lines.push(checkCertificateText(ca, `caBundleRef of ${name}`, context.clock.now()))
  }
  let stands = true
  for (const origin of new Set(configuredUrls.map((url) => new URL(url).origin))) {
    const connected = await checkConnection('upstream', origin, context, {
      ca,
      guard: { allowPrivateIP, configuredUrls },
    })
    lines.push(...connected.lines)
    stands &&= connected.stands
  }
  if (!stands) return [...lines, line.skipped('there is no connection')]
  return [...lines, await beginLogin(provider, context)]
}

/** Works out where a user would be sent: for OpenID Connect that takes the discovery document. */
async function beginLogin(provider: UpstreamProvider, context: CheckContext): Promise<CheckResult> {
  const line = about('upstream', provider.name)
  const { clock, log, secrets, outbound } = context.obtain
  const upstream = createUpstream(provider, { clock, log, secrets, outbound })
  try {
    const nothing = 'x'.repeat(43)
    const url = await upstream.authorizationUrl({
      state: nothing,
      nonce: nothing,
      codeVerifier: new Secret(nothing),
      redirectUri: 'http://localhost/oauth/callback',
    })
    return line.ok(`users are sent to ${url.origin}${url.pathname}`)
  } catch (error) {
    return line.thrown(error)
  } finally {
    await upstream.close()
  }
}
