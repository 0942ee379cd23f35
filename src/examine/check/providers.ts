import { type AuthenticateDeps, probeProvider, type ProviderProbe } from '../../authenticate/index.ts'
import { asFailure, type EpochMs } from '../../core/index.ts'
import { clockTolerance } from '../../oauth/index.ts'
import { type OAuthSection, type Provider, secretsOfProvider } from '../../resources/index.ts'
import { checkClients } from './clients.ts'
import { checkConnection } from './connection.ts'
import type { CheckContext } from './context.ts'
import { checkFile, readable } from './files.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { checkSecret } from './secrets.ts'

/** Tests the identity providers of a section: files, connection, discovery, keys, introspection. */
export function providerTasks({ oauth }: OAuthSection, context: CheckContext): readonly Task[] {
  return oauth.providers.map((provider) => () => {
    // A provider's clock that is behind makes tokens expire early; one that is ahead makes them not yet valid.
    const { earlySeconds } = clockTolerance(oauth.toleranceSeconds)
    const key = JSON.stringify(['provider', provider, earlySeconds])
    return context.once(key, () => checkProvider(provider, earlySeconds, context))
  })
}

async function checkProvider(
  provider: Provider,
  toleranceSeconds: number,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  const { name, issuerUrl, jwksUrl, introspectionUrl, caCertPath } = provider
  const secrets = await Promise.all(
    secretsOfProvider(provider).map((secret) => checkSecret(secret, `${name} ${secret.path.join('.')}`, context)),
  )
  const lines = [
    ...fileLines(provider, context.clock.now()),
    ...secrets.flat(),
    ...checkClients(name, [provider.clientAuth], context),
  ]
  const urls = [jwksUrl ?? issuerUrl, ...(introspectionUrl === undefined ? [] : [introspectionUrl])]
  const ca = caCertPath === undefined ? undefined : readable(caCertPath)
  const isLost = caCertPath !== undefined && ca === undefined
  const connected = new Map<string, boolean>()
  for (const url of urls) {
    const { origin } = new URL(url)
    if (connected.has(origin)) continue
    // Without its CA certificates no request is sent, and the chain cannot be verified.
    if (isLost) {
      connected.set(origin, false)
      continue
    }
    const guard = { allowPrivateIP: provider.allowPrivateIP, configuredUrls: [issuerUrl, ...urls] }
    const result = await checkConnection('issuer', url, context, { guard, ca })
    connected.set(origin, result.isConnected)
    lines.push(...result.lines)
  }
  const isConnected = (url: string): boolean => connected.get(new URL(url).origin) === true
  const { clock, log, metrics, outbound } = context.obtain
  const client = { secrets: context.secrets, tokenFile: context.obtain.tokenFile }
  const deps: AuthenticateDeps = { clock, log, metrics, outbound, client }
  const probe = probeProvider(provider, deps)
  try {
    lines.push(...(await keyLines(provider, probe, isConnected(jwksUrl ?? issuerUrl))))
    if (introspectionUrl !== undefined)
      lines.push(await introspectionLine(provider, probe, isConnected(introspectionUrl)))
  } finally {
    const time = probe.serverTime()
    if (time !== undefined)
      context.times.note(name, new Date(time.atMs).toUTCString(), time.receivedAtMs, toleranceSeconds * 1000)
    await probe.close()
  }
  return lines
}

function fileLines({ name, caCertPath, clientSecretFile, authTokenFile }: Provider, nowMs: EpochMs): CheckResult[] {
  const named = [
    { field: 'caCertPath', holds: 'certificates', path: caCertPath },
    { field: 'clientSecretFile', holds: 'text', path: clientSecretFile },
    { field: 'authTokenFile', holds: 'token', path: authTokenFile },
  ] as const
  return named.flatMap(({ field, holds, path }) =>
    path === undefined ? [] : checkFile({ holds, path }, `${field} of ${name}`, nowMs),
  )
}

async function keyLines(
  { name, issuerUrl, jwksUrl, introspectionUrl }: Provider,
  probe: ProviderProbe,
  isConnected: boolean,
) {
  const lines: CheckResult[] = []
  const [discovery, keys] = [about('discovery', name), about('keys', name)]
  if (!isConnected) {
    if (jwksUrl === undefined) lines.push(discovery.skipped('not tried: no connection'))
    return [...lines, keys.skipped('not tried: no connection')]
  }
  let jwksUri: string | undefined
  if (jwksUrl === undefined) {
    try {
      ;({ jwksUri } = await probe.discover())
      lines.push(discovery.ok(`issuer ${issuerUrl}`))
    } catch (error) {
      const found = discovery.thrown(error)
      // A provider for opaque tokens alone needs neither discovery nor keys (decisions §2.3).
      const { refusal, rule } = asFailure(error)
      if (introspectionUrl !== undefined && refusal?.status === 404)
        return [discovery.skipped('no discovery document: only opaque tokens are accepted'), keys.skipped('not needed')]
      const remedy =
        rule === 'discovery_other_issuer'
          ? 'Write issuerUrl exactly as in the document, trailing slash included: tokens have that issuer.'
          : 'Correct issuerUrl, or set jwksUrl.'
      return [{ ...found, remedy }, keys.skipped('no discovery document')]
    }
  }
  try {
    const { count, algorithms } = await probe.keys(jwksUri)
    lines.push(
      algorithms.length === 0
        ? keys.failed(
            count === 0 ? 'the key set has no signature key' : 'no key has a supported algorithm',
            'Publish keys for RS, PS or ES 256 to 512, or EdDSA; RSA with 2,048 to 8,192 bits.',
          )
        : keys.ok(`${count} key${count === 1 ? '' : 's'} for ${algorithms.join(', ')}`),
    )
  } catch (error) {
    lines.push(keys.thrown(error))
  }
  return lines
}

async function introspectionLine({ name, ...provider }: Provider, probe: ProviderProbe, isConnected: boolean) {
  const line = about('introspection', name)
  const clientId = provider.clientAuth?.clientId ?? provider.clientId
  if (!isConnected) return line.skipped('not tried: no connection')
  try {
    await probe.introspect()
    return line.ok(
      `accepts ${clientId === undefined ? 'requests' : `the client ${clientId}`}, rejects an invalid token`,
    )
  } catch (error) {
    const found = line.thrown(error)
    const isRefused = [400, 401, 403].includes(asFailure(error).refusal?.status ?? 0)
    const remedy =
      'Check clientId and clientSecretFile (or clientAuth, or authTokenFile), and the permissions of the client at the provider.'
    return isRefused ? { ...found, remedy } : found
  }
}
