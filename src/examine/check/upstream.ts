import { defaultRedirectUri } from '../../authserver/index.ts'
import { resourceUrlOf } from '../../compose/index.ts'
import { asFailure } from '../../core/index.ts'
import { shownUrl } from '../../http/index.ts'
import { mayHeal } from '../../oauth/index.ts'
import { mayBePrivate, type ResolvedAuthServer, upstreamClient } from '../../resources/index.ts'
import { probeUpstream, type UpstreamProbe } from '../../upstreams/index.ts'
import { checkConnection } from './connection.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { isUsable } from './secrets.ts'

type UpstreamProvider = ResolvedAuthServer['spec']['upstreamProviders'][number]

/** The identity providers in front of which an authorization server stands: connection, and each endpoint of a login. */
export const upstreamTasks = (server: ResolvedAuthServer, listenUrl: string, context: CheckContext): readonly Task[] =>
  server.spec.upstreamProviders.map((provider) => () => {
    const uri = redirectUriOf(provider, server, listenUrl, context)
    return checkUpstream(provider, uri, context)
  })

/** Where this provider sends browsers back to; of the first resource, where there are several. */
function redirectUriOf(
  { oidcConfig, oauth2Config }: UpstreamProvider,
  { name, spec }: ResolvedAuthServer,
  listenUrl: string,
  { config }: CheckContext,
): string {
  const route = config.routes.find(({ authServer }) => authServer?.server.name === name)
  const resource = route === undefined ? spec.issuer : resourceUrlOf(route, listenUrl)
  return (oidcConfig ?? oauth2Config)?.redirectUri ?? defaultRedirectUri(resource)
}

async function checkUpstream(
  provider: UpstreamProvider,
  redirectUri: string,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { name, oidcConfig, oauth2Config, caBundleRef } = provider
  const line = about('upstream', name)
  const urls =
    oidcConfig === undefined
      ? [
          oauth2Config?.authorizationEndpoint,
          oauth2Config?.tokenEndpoint,
          oauth2Config?.userInfo?.endpointUrl,
          oauth2Config?.dcrConfig?.discoveryUrl,
          oauth2Config?.dcrConfig?.registrationEndpoint,
        ]
      : [oidcConfig.issuerUrl]
  const configuredUrls = urls.filter((url) => url !== undefined)
  const lines: CheckResult[] = []
  let ca: Buffer | undefined
  if (caBundleRef !== undefined) {
    // It has a line of its own among the secrets of the server.
    if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))
      return [line.skipped('without its authorities nothing is sent')]
    ca = Buffer.from(context.secrets.handle(caBundleRef).current().reveal())
  }
  let stands = true
  for (const origin of new Set(configuredUrls.map((url) => new URL(url).origin))) {
    const connected = await checkConnection('upstream', origin, context, {
      ca,
      guard: { allowPrivateIP: mayBePrivate(provider), configuredUrls },
    })
    lines.push(...connected.lines)
    stands &&= connected.stands
  }
  if (!stands) return [...lines, line.skipped('there is no connection')]
  const { clock, log, secrets, tokenFile, outbound } = context.obtain
  const probe = probeUpstream(provider, redirectUri, { clock, log, secrets, tokenFile, outbound })
  try {
    // Each look would be one more client there.
    if (oauth2Config?.dcrConfig !== undefined) {
      const client = about('upstream.client', name).skipped('it is registered by the first login, and not by this')
      return [...lines, client, ...(await userInfoLine(name, probe))]
    }
    const login = await loginLine(name, redirectUri, probe)
    lines.push(login.line)
    if (!login.isKnown) return lines
    lines.push(...(await keysLine(name, probe)))
    const client = await clientLine(provider, redirectUri, probe)
    lines.push(client)
    if (client.status !== 'failed') lines.push(await refreshLine(name, probe, context))
    return [...lines, ...(await userInfoLine(name, probe))]
  } finally {
    await probe.close()
  }
}

/** Where a user would be sent: for OpenID Connect that takes the discovery document, without which nothing else is known. */
async function loginLine(
  name: string,
  redirectUri: string,
  probe: UpstreamProbe,
): Promise<{ readonly line: CheckResult; readonly isKnown: boolean }> {
  const line = about('upstream', name)
  try {
    const { url, status } = await probe.authorize()
    return {
      line: judgeLogin(line, `users are sent to ${shownUrl(url)}`, status, redirectUri),
      isKnown: true,
    }
  } catch (error) {
    return { line: line.thrown(error), isKnown: false }
  }
}

function judgeLogin(line: ReturnType<typeof about>, sent: string, status: number, redirectUri: string): CheckResult {
  if (isNowhere(status))
    return line.failed(
      `${sent}, where status ${status} says that there is nothing`,
      'Correct authorizationEndpoint, or look at the discovery document of the provider.',
    )
  if (status >= 500) return line.failed(`${sent}, which answers ${status}`, 'Look at the provider itself.')
  if (status >= 400)
    return line.warning(
      `${sent}, which answers ${status} to a login`,
      `Is the redirect URI ${redirectUri} registered at the provider, and is clientId the right one?`,
    )
  return line.ok(sent)
}

/** There is nothing at this address, or nothing that takes this method. */
const isNowhere = (status: number): boolean => status === 404 || status === 405 || status === 410

async function keysLine(name: string, probe: UpstreamProbe): Promise<CheckResult[]> {
  const line = about('upstream.keys', name)
  try {
    const count = await probe.keys()
    if (count === undefined) return []
    if (count > 0) return [line.ok(`${count} for ID tokens`)]
    return [line.failed('the set has no key that may verify a signature', 'The provider must publish its keys.')]
  } catch (error) {
    return [line.thrown(error)]
  }
}

/** Client id and secret, shown to the token endpoint as at a login, with a code that nobody has. */
async function clientLine(provider: UpstreamProvider, redirectUri: string, probe: UpstreamProbe): Promise<CheckResult> {
  const line = about('upstream.client', provider.name)
  const clientId = upstreamClient(provider)?.clientId ?? ''
  try {
    if ((await probe.client()) === 'taken')
      return line.ok(`it takes the client ${clientId}, and refuses a made-up code`)
    return line.skipped('its answer to a made-up code does not say whether it knows the client')
  } catch (error) {
    const failure = asFailure(error)
    const found = line.thrown(failure)
    if (failure.code !== 'config_error' || failure.detail === undefined || failure.cause !== undefined) return found
    const isRedirect = failure.detail.includes('redirect_uri')
    return {
      ...found,
      remedy: isRedirect
        ? `Register the redirect URI ${redirectUri} at the provider.`
        : 'Compare what we say and show (clientId, clientSecretRef, clientAuth) with what the provider has for this client.',
    }
  }
}

/** How a refresh is refused decides whether users of an ended session log in again: each provider has its own errors for it. */
async function refreshLine(name: string, probe: UpstreamProbe, { refreshToken }: CheckContext): Promise<CheckResult> {
  const line = about('upstream.refresh', name)
  const own = refreshToken?.upstream === name ? refreshToken.token : undefined
  try {
    const { refreshToken: next, expiresAtMs, scopes } = await probe.refresh(own)
    if (own === undefined)
      return line.failed('a made-up refresh token was accepted', 'The token endpoint must verify refresh tokens.')
    const rotates = next?.equals(own) === false ? 'a new refresh token came' : 'the refresh token stays'
    const life = expiresAtMs === undefined ? 'no lifetime is given' : 'a lifetime is given'
    return line.ok(`a refresh works: ${rotates}, ${life}, scopes ${scopes.join(' ') || 'none'}`)
  } catch (error) {
    const failure = asFailure(error)
    const { code, detail = code, refusal } = failure
    if (code === 'no_session' && refusal === undefined) return line.ok('a refresh works, and brings an ID token')
    if (own !== undefined) return line.thrown(failure)
    if (code === 'no_session') {
      const rest = mayHeal(failure) ? ', and tried again after 5 min' : ''
      return line.ok(`refuses a made-up refresh token (${detail}): read as an ended grant${rest}`)
    }
    const [reading, result] =
      code === 'config_error' ? ['an error of configuration', 500] : ['an outage', failure.status]
    return line.warning(
      `a made-up refresh token: ${detail}; read as ${reading}`,
      `Users whose grant has ended would get ${result} instead of a new login. Does the client have the grant refresh_token? Try a real one with --refresh-token-file.`,
    )
  }
}

async function userInfoLine(name: string, probe: UpstreamProbe): Promise<CheckResult[]> {
  const line = about('upstream.user-info', name)
  try {
    const answered = await probe.userInfo()
    if (answered === undefined) return []
    const { url, status } = answered
    if (status >= 500) return [line.failed(`it answers ${status}`, 'Look at the provider itself.')]
    if (isNowhere(status))
      return [
        line.failed(
          `status ${status} says that there is nothing at ${shownUrl(url)}`,
          'Correct endpointUrl and httpMethod, or look at the discovery document of the provider.',
        ),
      ]
    return [line.ok(status < 400 ? 'answers' : 'answers, and refuses a made-up token')]
  } catch (error) {
    return [line.thrown(error)]
  }
}
