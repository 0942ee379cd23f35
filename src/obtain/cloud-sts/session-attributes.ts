import { compileText, MatcherError, type TextExpression } from '../../cel/index.ts'
import { Failure, type Claims, type FailureCode } from '../../core/index.ts'
import {
  asciiJson,
  type CloudSts,
  fillPolicy,
  LONGEST_POLICY,
  parsedTemplate,
  type RoleMapping,
  type SessionPolicy,
  SOURCE_IDENTITY,
  TAG_VALUE,
} from '../../resources/index.ts'
import { claimAt } from './claim-values.ts'

/** A tag of a session. */
export interface Tag {
  readonly key: string
  readonly value: string
  readonly transitive: boolean
}

/**
 * Session attributes requested from STS besides role and name; all derive from the caller's claims and are part of
 * the cache key.
 */
export interface SessionAttributes {
  readonly tags: readonly Tag[]
  readonly sourceIdentity: string | undefined
  /** JSON. */
  readonly policy: string | undefined
  /** The configured policy: with placeholders if it is a template. */
  readonly writtenPolicy: string | undefined
  readonly policyArns: readonly string[]
  /** As configured. */
  readonly externalId: string | undefined
  /**
   * Whether claims determine tags or policies: then their size limits are the caller's fault, else the
   * configuration's.
   */
  readonly variesByCaller: boolean
}

/** Why a caller can't get such a session, without claim values. */
export interface AttributeProblem {
  readonly refusal: Extract<FailureCode, 'role_denied' | 'rule_limit'>
  readonly reason: string
}

type Fields = Pick<RoleMapping, 'sessionTags' | 'sourceIdentity' | 'policyArns' | 'externalId'> & {
  readonly sessionPolicy?: string | SessionPolicy | undefined
}

/** Wildcards of a policy: a claim may select a resource, but not widen the policy. */
const WIDE = /[*?$\p{C}]/u
const LONGEST_VALUE = 256

/** The attribute fields of a mapping: its own, with those of the config as defaults. */
export const attributeFieldsOf = (
  {
    sessionTags,
    sourceIdentity,
    sessionPolicy,
    sessionPolicyTemplate: template,
    policyArns,
    externalId,
  }: Pick<CloudSts, keyof Fields | 'sessionPolicyTemplate'>,
  mapping: Partial<RoleMapping> = {},
): Fields => ({
  sessionTags: mapping.sessionTags ?? sessionTags,
  sourceIdentity: mapping.sourceIdentity ?? sourceIdentity,
  sessionPolicy: mapping.sessionPolicy ?? (template === undefined ? sessionPolicy : { template }),
  policyArns: mapping.policyArns ?? policyArns,
  externalId: mapping.externalId ?? externalId,
})

/**
 * Compiles the attributes of the sessions of one role. A claim that is missing drops no tag in silence: unless that is
 * `optional`, the caller is refused, as for every value that STS does not take. Undefined where there are none. Throws `config_error` for an expression that
 * does not compile.
 */
export function createAttributes({
  sessionTags = [],
  sourceIdentity,
  sessionPolicy,
  policyArns = [],
  externalId,
}: Fields): (claims: Claims) => SessionAttributes | AttributeProblem | undefined {
  const texts = [sourceIdentity, sessionPolicy, externalId]
  if (sessionTags.length + policyArns.length === 0 && texts.every((text) => text === undefined)) return () => undefined
  const tags = sessionTags.map((tag) => ({ ...tag, expression: compiled(tag.value, `session tag "${tag.key}"`) }))
  const identity = sourceIdentity === undefined ? undefined : compiled(sourceIdentity, 'source identity')
  const policyFor = policyMaker(sessionPolicy)
  const writtenPolicy = written(sessionPolicy)
  const isTemplate = typeof sessionPolicy === 'object' && /\{claims\./.test(sessionPolicy.template ?? '')
  const hasVaryingTags = sessionTags.some(({ value }) => /\bclaims\b/.test(value))

  return (claims) => {
    const made: Tag[] = []
    for (const { key, optional = false, transitive = false, allowEmpty = false, expression } of tags) {
      const what = `the session tag ${JSON.stringify(key)}`
      const value = textOf(expression, claims, what, TAG_VALUE)
      if (value === '' && !allowEmpty)
        return { refusal: 'role_denied', reason: `${what} is empty; set allowEmpty to allow it` }
      if (typeof value === 'string') made.push({ key, value, transitive })
      else if (!(optional && value.isMissing)) return { refusal: value.refusal, reason: value.reason }
    }
    const who = identity && textOf(identity, claims, 'the source identity', SOURCE_IDENTITY)
    if (typeof who === 'object') return { refusal: who.refusal, reason: who.reason }
    const policy = policyFor(claims)
    if (typeof policy === 'object') return policy
    const variesByCaller = hasVaryingTags || isTemplate
    return { tags: made, sourceIdentity: who, policy, writtenPolicy, policyArns, externalId, variesByCaller }
  }
}

function compiled(expression: string, what: string): TextExpression {
  try {
    return compileText(expression)
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    const place = `line ${error.line}, column ${error.column}`
    throw new Failure('config_error', { detail: `${what}, ${place}: ${error.message}` })
  }
}

function textOf(
  expression: TextExpression,
  claims: Claims,
  what: string,
  form: RegExp,
): string | (AttributeProblem & { readonly isMissing: boolean }) {
  const result = expression.evaluate(claims)
  if (result.outcome === 'limit')
    return { refusal: 'rule_limit', reason: `${what} exceeds the evaluation limit`, isMissing: false }
  if (result.outcome === 'error') {
    const key = result.missingKey === undefined ? '' : ` ${JSON.stringify(result.missingKey)}`
    const isMissing = result.reason === MISSING
    return { refusal: 'role_denied', reason: `${what}: ${result.reason}${isMissing ? key : ''}`, isMissing }
  }
  if (form.test(result.text)) return result.text
  return {
    refusal: 'role_denied',
    reason: `${what} has characters or a length that STS does not accept`,
    isMissing: false,
  }
}

/** CEL's message for a missing key. */
const MISSING = 'there is no such key'

function written(policy: Fields['sessionPolicy']): string | undefined {
  if (policy === undefined || typeof policy === 'string') return policy
  return policy.document === undefined ? policy.template : JSON.stringify(policy.document)
}

function policyMaker(policy: Fields['sessionPolicy']): (claims: Claims) => string | undefined | AttributeProblem {
  const template = typeof policy === 'object' ? policy.template : undefined
  if (template === undefined) {
    const constant = written(policy)
    const text = constant === undefined ? undefined : asciiJson(constant)
    return () => text
  }
  const parsed = parsedTemplate(template) ?? {}
  return (claims) => {
    let reason: string | undefined
    const text = fillPolicy(parsed, (claim) => {
      const value = claimAt(claims, claim)
      if (typeof value === 'string' && value !== '' && value.length <= LONGEST_VALUE && !WIDE.test(value)) return value
      const why = value === undefined ? 'is missing' : 'is not a string that is allowed there'
      reason ??= `the session policy: the claim ${JSON.stringify(claim)} ${why}`
      return ''
    })
    if (text.length > LONGEST_POLICY) reason ??= `the session policy has more than ${LONGEST_POLICY} characters`
    return reason === undefined ? text : { refusal: 'role_denied', reason }
  }
}

/** The session policies as STS parameters. */
export const policiesOf = (attributes: SessionAttributes | undefined, arn: (text: string) => string) => ({
  ...(attributes?.policy === undefined ? {} : { Policy: attributes.policy }),
  ...(attributes === undefined || attributes.policyArns.length === 0
    ? {}
    : { PolicyArns: attributes.policyArns.map((text) => ({ arn: arn(text) })) }),
})

/** Tags, source identity and external id, which only `AssumeRole` accepts. */
export function assumeRoleFieldsOf(attributes: SessionAttributes | undefined) {
  const { tags = [], sourceIdentity, externalId } = attributes ?? {}
  const transitive = tags.filter((tag) => tag.transitive).map(({ key }) => key)
  return {
    ...(tags.length === 0 ? {} : { Tags: tags.map(({ key, value }) => ({ Key: key, Value: value })) }),
    ...(transitive.length === 0 ? {} : { TransitiveTagKeys: transitive }),
    ...(sourceIdentity === undefined ? {} : { SourceIdentity: sourceIdentity }),
    ...(externalId === undefined ? {} : { ExternalId: externalId }),
  }
}
