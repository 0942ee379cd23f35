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

/** Tests the upstream identity providers of an authorization server: connection and each endpoint of a login. */
export const upstreamTasks = (server: ResolvedAuthServer, listenUrl: string, context: CheckContext): readonly Task[] =>
  server.spec.upstreamProviders.map((provider) => () => {
    const uri = redirectUriOf(provider, server, listenUrl, context)
    return checkUpstream(provider, uri, context)
  })

/** Redirect URI at this provider; that of the first resource if there are several. */
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

/** `loginOnly`: it identifies users at a login, and its tokens are not used. */
export async function checkUpstream(
  provider: UpstreamProvider,
  redirectUri: string,
  context: CheckContext,
  options: { readonly loginOnly?: boolean } = {},
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
    // The secrets of the server have their own line for it.
    if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))
      return [line.skipped('not tried: its CA certificates are unusable')]
    ca = Buffer.from(context.secrets.handle(caBundleRef).current().reveal())
  }
  let isConnected = true
  for (const origin of new Set(configuredUrls.map((url) => new URL(url).origin))) {
    const connected = await checkConnection('upstream', origin, context, {
      ca,
      guard: { allowPrivateIP: mayBePrivate(provider), configuredUrls },
    })
    lines.push(...connected.lines)
    isConnected &&= connected.isConnected
  }
  if (!isConnected) return [...lines, line.skipped('not tried: no connection')]
  const { clock, log, secrets, tokenFile, outbound } = context.obtain
  const probe = probeUpstream(provider, redirectUri, { clock, log, secrets, tokenFile, outbound })
  try {
    // Each test would register another client.
    if (oauth2Config?.dcrConfig !== undefined) {
      const client = about('upstream.client', name).skipped('not tried: the first login registers the client')
      return [...lines, client, ...(await userInfoLine(name, probe))]
    }
    const login = await loginLine(name, redirectUri, probe)
    lines.push(login.line)
    if (!login.isKnown) return lines
    lines.push(...(await keysLine(name, probe)))
    const client = await clientLine({ name, clientId: upstreamClient(provider)?.clientId }, redirectUri, probe)
    lines.push(client)
    if (options.loginOnly === true) return lines
    if (client.status !== 'failed') lines.push(await refreshLine(name, probe, context))
    return [...lines, ...(await userInfoLine(name, probe))]
  } finally {
    await probe.close()
  }
}

/** Tests the login page. OpenID Connect needs the discovery document first. */
export async function loginLine(
  name: string,
  redirectUri: string,
  probe: Pick<UpstreamProbe, 'authorize'>,
): Promise<{ readonly line: CheckResult; readonly isKnown: boolean }> {
  const line = about('upstream', name)
  try {
    const { url, status } = await probe.authorize()
    return {
      line: loginResult(line, `users are redirected to ${shownUrl(url)}`, status, redirectUri),
      isKnown: true,
    }
  } catch (error) {
    return { line: line.thrown(error), isKnown: false }
  }
}

function loginResult(line: ReturnType<typeof about>, sent: string, status: number, redirectUri: string): CheckResult {
  if (isNowhere(status))
    return line.failed(
      `${sent}, which returns ${status}`,
      'Correct authorizationEndpoint, or check the discovery document of the provider.',
    )
  if (status >= 500) return line.failed(`${sent}, which returns ${status}`, 'Check the provider.')
  if (status >= 400)
    return line.warning(
      `${sent}, which returns ${status} for a login request`,
      `Register the redirect URI ${redirectUri} at the provider, and check clientId.`,
    )
  return line.ok(sent)
}

/** The address does not exist, or not for this method. */
export const isNowhere = (status: number): boolean => status === 404 || status === 405 || status === 410

async function keysLine(name: string, probe: UpstreamProbe): Promise<CheckResult[]> {
  const line = about('upstream.keys', name)
  try {
    const count = await probe.keys()
    if (count === undefined) return []
    if (count > 0) return [line.ok(`${count} for ID tokens`)]
    return [line.failed('the key set has no signature key', 'Publish the keys of the provider at this URL.')]
  } catch (error) {
    return [line.thrown(error)]
  }
}

/** Sends client ID and secret to the token endpoint as at a login, with an invalid code. */
export async function clientLine(
  { name, clientId = '' }: { readonly name: string; readonly clientId?: string | undefined },
  redirectUri: string,
  probe: Pick<UpstreamProbe, 'client'>,
): Promise<CheckResult> {
  const line = about('upstream.client', name)
  try {
    if ((await probe.client()) === 'taken') return line.ok(`accepts the client ${clientId} and rejects an invalid code`)
    return line.skipped('the response to an invalid code does not show whether the client is accepted')
  } catch (error) {
    const failure = asFailure(error)
    const found = line.thrown(failure)
    if (failure.code !== 'config_error' || failure.detail === undefined || failure.cause !== undefined) return found
    const isRedirect = failure.detail.includes('redirect_uri')
    return {
      ...found,
      remedy: isRedirect
        ? `Register the redirect URI ${redirectUri} at the provider.`
        : 'Compare clientId, clientSecretRef and clientAuth with the client registered at the provider.',
    }
  }
}

/**
 * The error for an invalid refresh token decides whether users with an expired grant log in again. Providers use
 * different errors.
 */
async function refreshLine(name: string, probe: UpstreamProbe, { refreshToken }: CheckContext): Promise<CheckResult> {
  const line = about('upstream.refresh', name)
  const own = refreshToken?.upstream === name ? refreshToken.token : undefined
  try {
    const { refreshToken: next, expiresAtMs, scopes } = await probe.refresh(own)
    if (own === undefined)
      return line.failed(
        'the token endpoint accepted an invalid refresh token',
        'The token endpoint does not verify refresh tokens; do not use it.',
      )
    const rotates = next?.equals(own) === false ? 'new refresh token' : 'same refresh token'
    const life = expiresAtMs === undefined ? 'no lifetime' : 'with a lifetime'
    return line.ok(`refreshed: ${rotates}, ${life}, scopes ${scopes.join(' ') || 'none'}`)
  } catch (error) {
    const failure = asFailure(error)
    const { code, detail = code, refusal } = failure
    if (code === 'no_session' && refusal === undefined) return line.ok('refreshed, with an ID token')
    if (own !== undefined) return line.thrown(failure)
    if (code === 'no_session') {
      const rest = mayHeal(failure) ? ', retried after 5 min' : ''
      return line.ok(`rejects an invalid refresh token (${detail}): treated as an expired grant${rest}`)
    }
    const [reading, result] = code === 'config_error' ? ['a configuration error', 500] : ['an outage', failure.status]
    return line.warning(
      `an invalid refresh token: ${detail}; treated as ${reading}`,
      `Users with an expired grant get ${result} instead of a new login. Allow the grant refresh_token for the client, and test a real token with --refresh-token-file.`,
    )
  }
}

async function userInfoLine(name: string, probe: UpstreamProbe): Promise<CheckResult[]> {
  const line = about('upstream.user-info', name)
  try {
    const answered = await probe.userInfo()
    if (answered === undefined) return []
    const { url, status } = answered
    if (status >= 500) return [line.failed(`status ${status}; expected below 500`, 'Check the provider.')]
    if (isNowhere(status))
      return [
        line.failed(
          `${shownUrl(url)} returned ${status}`,
          'Correct endpointUrl and httpMethod, or check the discovery document of the provider.',
        ),
      ]
    return [line.ok(status < 400 ? 'responds' : 'responds and rejects an invalid token')]
  } catch (error) {
    return [line.thrown(error)]
  }
}
