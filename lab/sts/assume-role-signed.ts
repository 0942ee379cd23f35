import type { EpochMs } from '../../src/core/index.ts'
import type { IssuedCredentials } from '../sigv4-verify.ts'
import {
  checkPolicy,
  DEFAULT_SECONDS,
  durationOf,
  invalid,
  type LabRole,
  newCredentials,
  parameter,
} from './assume-role.ts'
import { StsRefusal } from './xml.ts'

/** A role that was assumed by a role lasts no longer. */
const LONGEST_CHAINED_SECONDS = 3_600
const MOST_TAGS = 50

/**
 * Validates a signed AssumeRole request in the order of AWS: parameters, trust of the role, duration.
 * Throws `StsRefusal` with the codes of the API reference, and with the action that is not allowed.
 */
export function assumeRoleSigned(
  form: URLSearchParams,
  caller: IssuedCredentials,
  roles: readonly LabRole[],
  nowMs: EpochMs,
): { readonly credentials: IssuedCredentials } {
  const roleArn = parameter(form, 'RoleArn', /^arn:[\w-]+:iam::\d{12}:role\/[\w+=,.@\-/]{1,512}$/)
  const sessionName = parameter(form, 'RoleSessionName', /^[\w+=,.@-]{2,64}$/)
  const seconds = durationOf(form)
  checkPolicy(form)
  const tags = tagsOf(form)
  const sourceIdentity = form.has('SourceIdentity')
    ? parameter(form, 'SourceIdentity', /^[\w+=,.@-]{2,64}$/)
    : caller.sourceIdentity

  const role = roles.find(({ arn }) => arn === roleArn)
  const trusts = role?.trusts
  const refuse = (action: string) =>
    new StsRefusal(
      403,
      'AccessDenied',
      `User: ${caller.roleArn} is not authorized to perform: ${action} on resource: ${roleArn}`,
    )
  if (trusts === undefined || !trusts.roles.includes(caller.roleArn)) throw refuse('sts:AssumeRole')
  if (trusts.externalId !== undefined && form.get('ExternalId') !== trusts.externalId) throw refuse('sts:AssumeRole')
  const wanted = trusts.tags ?? []
  if (Object.keys(tags).length > 0 && wanted.length === 0) throw refuse('sts:TagSession')
  if (wanted.some((key) => tags[key] === undefined)) throw refuse('sts:AssumeRole')
  if (form.has('SourceIdentity') && trusts.allowsSourceIdentity !== true) throw refuse('sts:SetSourceIdentity')
  if (seconds > LONGEST_CHAINED_SECONDS)
    throw invalid('The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.')
  if (seconds > (role?.maxSessionSeconds ?? DEFAULT_SECONDS))
    throw invalid('The requested DurationSeconds exceeds the MaxSessionDuration set for this role.')
  const endsAtMs = nowMs + (role?.sessionSeconds ?? seconds) * 1000
  const credentials = newCredentials(roleArn, sessionName, sessionName, endsAtMs)
  return {
    credentials: {
      ...credentials,
      ...(Object.keys(tags).length === 0 ? {} : { tags }),
      ...(sourceIdentity === undefined ? {} : { sourceIdentity }),
    },
  }
}

function tagsOf(form: URLSearchParams): Record<string, string> {
  const tags: Record<string, string> = {}
  for (let index = 1; form.has(`Tags.member.${index}.Key`); index++) {
    const key = parameter(form, `Tags.member.${index}.Key`, /^(?!aws:)[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}$/iu)
    const value = form.get(`Tags.member.${index}.Value`) ?? ''
    if (!/^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u.test(value) || index > MOST_TAGS) throw invalid('Invalid tag')
    if (Object.keys(tags).some((known) => known.toLowerCase() === key.toLowerCase()))
      throw invalid('Duplicate tag keys')
    tags[key] = value
  }
  return tags
}
