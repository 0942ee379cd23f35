import type { EpochMs } from '../../core/index.ts'
import { identityFor, type OpenIdentity, type RoleChoice } from '../../obtain/cloud-sts/index.ts'
import type { ResolvedAuthOf } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** The AWS identity of the process. */
export interface CheckedIdentity {
  readonly lines: readonly CheckResult[]
  /** Undefined if unavailable. */
  readonly identity: OpenIdentity | undefined
}

/** Obtains the identity of a config and calls GetCallerIdentity before and after its first hop. */
export async function checkIdentity(
  { spec }: ResolvedAuthOf<'cloudSts'>,
  context: CheckContext,
): Promise<CheckedIdentity> {
  const { source } = spec
  if (source === undefined || source.type === 'callerToken') return { lines: [], identity: undefined }
  const identity = identityFor(spec, source, context.obtain)
  const lines: CheckResult[] = []
  for (const each of identity.from === undefined ? [identity] : [identity.from, identity]) {
    const isHub = each.from !== undefined
    const line = about(isHub ? 'hub' : 'identity', isHub ? (source.through?.roleArn ?? '') : 'of the process')
    try {
      const keys = await each.current()
      const life = lifeOf(keys.expiresAtMs, context.clock.now())
      const place = isHub ? '' : `${each.ambient.answered}: `
      lines.push(line.ok(`${place}${await each.who(keys)}, ${life}`))
    } catch (error) {
      return { lines: [...lines, line.thrown(error)], identity: undefined }
    }
  }
  return { lines, identity }
}

const lifeOf = (endMs: EpochMs, nowMs: EpochMs): string =>
  Number.isFinite(endMs) ? `valid for ${Math.max(0, Math.round((endMs - nowMs) / 60_000))} min` : 'no expiry'

/** Names what STS accepted with a session besides role and session name. Contains no claim values. */
export function acceptedOf(attributes: RoleChoice['attributes']): string {
  if (attributes === undefined) return ''
  const { tags, sourceIdentity, policy, policyArns } = attributes
  const parts = [
    ...(tags.length === 0 ? [] : [`tags ${tags.map(({ key }) => key).join(', ')}`]),
    ...(sourceIdentity === undefined ? [] : ['a source identity']),
    ...(policy === undefined ? [] : ['a session policy']),
    ...policyArns,
  ]
  return parts.length === 0 ? '' : `, with ${parts.join('; ')}`
}
