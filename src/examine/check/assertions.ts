import { type ResolvedAuthServer, type TrustedIssuer, trustedIssuersOf } from '../../resources/index.ts'
import { createTrustedKeys } from '../../upstreams/index.ts'
import { checkConnection } from './connection.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { isUsable } from './secrets.ts'

/** Those whose assertions give tokens at an authorization server without a login: connection and keys. */
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
    // It has a line of its own among the secrets of the server.
    if (!(await isUsable({ value: caBundleRef, holds: 'certificates' }, context)))
      return [line.skipped('without its authorities nothing is sent')]
    ca = Buffer.from(context.secrets.handle(caBundleRef).current().reveal())
  }
  const configuredUrls = jwksUrl === undefined ? [issuerUrl] : [issuerUrl, jwksUrl]
  const guard = { allowPrivateIP, configuredUrls }
  const { lines, stands } = await checkConnection('issuer', jwksUrl ?? issuerUrl, context, { guard, ca })
  if (!stands) return [...lines, line.skipped('there is no connection')]
  const { clock, log, secrets, tokenFile, outbound } = context.obtain
  const trusted = createTrustedKeys(issuer, { clock, log, secrets, tokenFile, outbound })
  try {
    const { length } = await trusted.keys.keys()
    if (length > 0) return [...lines, line.ok(`${length} for assertions`)]
    return [
      ...lines,
      line.failed('the set has no key that may verify a signature', 'The issuer must publish its keys.'),
    ]
  } catch (error) {
    const remedy = 'Write the issuer as its document has it, byte for byte, or name the keys themselves (jwksUrl).'
    return [...lines, { ...line.thrown(error), ...(jwksUrl === undefined ? { remedy } : {}) }]
  } finally {
    await trusted.close()
  }
}
