import { type ResolvedAuthServer, type TrustedIssuer, trustedIssuersOf } from '../../resources/index.ts'
import { createTrustedKeys } from '../../upstreams/index.ts'
import { checkConnection } from './connection.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { isUsable } from './secrets.ts'

/** Connection and keys of each issuer whose assertions the authorization server accepts without a login. */
export const assertionTasks = ({ spec }: ResolvedAuthServer, context: CheckContext): readonly Task[] =>
  trustedIssuersOf(spec).map((issuer) => () => {
    const key = JSON.stringify(['assertions', issuer])
    return context.once(key, () => checkIssuer(issuer, context))
  })

async function checkIssuer(issuer: TrustedIssuer, context: CheckContext): Promise<readonly CheckResult[]> {
  const { issuerUrl, jwksUrl, caBundleRef, allowPrivateIP } = issuer
  const line = about('keys', issuerUrl)
  let ca: Buffer | undefined
  if (caBundleRef !== undefined) {
    // The secrets of the server have their own line for it.
    if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))
      return [line.skipped('not tried: its CA certificates are unusable')]
    ca = Buffer.from(context.secrets.handle(caBundleRef).current().reveal())
  }
  const configuredUrls = jwksUrl === undefined ? [issuerUrl] : [issuerUrl, jwksUrl]
  const guard = { allowPrivateIP, configuredUrls }
  const { lines, isConnected } = await checkConnection('issuer', jwksUrl ?? issuerUrl, context, { guard, ca })
  if (!isConnected) return [...lines, line.skipped('not tried: no connection')]
  const { clock, log, secrets, tokenFile, outbound } = context.obtain
  const trusted = createTrustedKeys(issuer, { clock, log, secrets, tokenFile, outbound })
  try {
    const { length } = await trusted.keys.keys()
    if (length > 0) return [...lines, line.ok(`${length} for assertions`)]
    return [...lines, line.failed('the key set has no signature key', 'Publish the keys of the issuer at this URL.')]
  } catch (error) {
    const remedy = 'Write the issuer exactly as in its discovery document, or set jwksUrl.'
    return [...lines, { ...line.thrown(error), ...(jwksUrl === undefined ? { remedy } : {}) }]
  } finally {
    await trusted.close()
  }
}
