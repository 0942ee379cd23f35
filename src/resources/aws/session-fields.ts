import { z } from 'zod'
import { isRecord, type Rule, withRules } from '../../fields/index.ts'
import { isConstantText, MOST_TAGS, textProblem } from './matcher-verdicts.ts'
import { policyProblem, templateProblem } from './session-policy.ts'
import { ARN_PARTITIONS } from './aws-partitions.ts'
import { externalIdField } from './sts-source.ts'

const POLICY_ARN = new RegExp(`^arn:(${ARN_PARTITIONS}):iam::(\\d{12}|aws):policy\\/[\\w+=,.@\\-_/]+$`)
/** Allowed characters of a tag key (AWS STS, `Tag`), in RE2 syntax. */
const TAG_KEY = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]+$/u
/** Maximum characters of an expression; longer logic belongs in the identity provider. */
const LONGEST_EXPRESSION = 1024

/** Allowed characters and length of a tag value (AWS STS, `Tag`). */
export const TAG_VALUE = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u
/** Source identities that STS accepts. */
export const SOURCE_IDENTITY = /^[A-Za-z0-9_+=,.@-]{2,64}$/

/** CEL over the claims that returns a string of this form. */
const textExpression = (form: RegExp) =>
  z
    .string()
    .min(1)
    .max(LONGEST_EXPRESSION)
    .superRefine((text, context) => {
      const message = text === '' ? undefined : textProblem(text, form)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })

const sessionTag = () =>
  withRules(
    z.strictObject({
      key: z
        .string()
        .min(1)
        .max(128)
        .regex(TAG_KEY, { error: 'expected letters, digits, spaces and _.:/=+-@' })
        .describe('Key of the tag; aws: is reserved.'),
      value: textExpression(TAG_VALUE).describe(
        'CEL over the variable claims that gives a text of at most 256 characters.',
      ),
      transitive: z.boolean().optional().describe('Stays with the session when it assumes further roles.'),
      optional: z
        .boolean()
        .optional()
        .describe('A caller without the claim has a session without the tag, and is not refused.'),
      allowEmpty: z
        .boolean()
        .optional()
        .describe('Allows an empty value; a caller with one is refused otherwise. Extends the specification.'),
    }),
    [
      {
        message: 'this value is empty; expected a value, or "allowEmpty: true"',
        at: 'value',
        holds: ({ value, allowEmpty }) =>
          typeof value !== 'string' || allowEmpty === true || value === '' || !isConstantText(value, ''),
      },
      {
        message: 'keys that begin with "aws:" are reserved',
        at: 'key',
        holds: ({ key }) => typeof key !== 'string' || !/^aws:/i.test(key),
        cel: "!self.key.lowerAscii().startsWith('aws:')",
        json: { properties: { key: { not: { pattern: '^[aA][wW][sS]:' } } } },
      },
    ],
  )

const sessionPolicy = () =>
  withRules(
    z.strictObject({
      document: z.record(z.string(), z.unknown()).optional().describe('The policy, as it is.'),
      template: z
        .string()
        .min(1)
        .max(4096)
        .optional()
        .describe('The policy as JSON with {claims.PATH} in Resource and Condition of statements.'),
    }),
    [
      {
        message: 'expected either "document" or "template"',
        holds: ({ document, template }) => (document === undefined) !== (template === undefined),
        cel: 'has(self.document) != has(self.template)',
        json: { oneOf: [{ required: ['document'] }, { required: ['template'] }] },
      },
      {
        message: 'expected a policy',
        explain: (value) => policyProblem(value) ?? '',
        holds: (value) => policyProblem(value) === undefined,
      },
    ],
  )

/** Managed policies that narrow a session. */
export const policyArns = () =>
  z
    .array(z.string().max(2048).regex(POLICY_ARN, { error: 'expected the ARN of a policy' }))
    .max(10)
    .optional()

const tags = () =>
  z
    .array(sessionTag())
    .max(MOST_TAGS)
    .superRefine((list, context) => {
      const seen = new Set<string>()
      for (const [index, tag] of list.entries()) {
        const key = isRecord(tag) && typeof tag.key === 'string' ? tag.key.toLowerCase() : `${index}`
        if (seen.has(key))
          context.addIssue({
            code: 'custom',
            message: 'this tag is there already; case does not count',
            path: [index, 'key'],
          })
        seen.add(key)
      }
    })
    .optional()

/** Session policy of all roles of a config without their own, fallback included. */
export const sessionPolicyTemplate = () =>
  z
    .string()
    .min(1)
    .max(4096)
    .superRefine((template, context) => {
      const message = template === '' ? undefined : templateProblem(template)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .optional()
    .describe(
      'Session policy with {claims.PATH} in Resource and Condition, for roles without one of their own. Extends the specification.',
    )

/** Session attributes besides the role: of a mapping, or the default for all roles of a config. */
export const attributeFields = () => ({
  sessionTags: tags().describe('Session tags, with a source of type ambient or role. Extends the specification.'),
  sourceIdentity: textExpression(SOURCE_IDENTITY)
    .optional()
    .describe(
      'CEL over the variable claims; returns 2 to 64 letters, digits and _+=,.@-: the identity in CloudTrail, kept through all roles. With a source of type ambient or role. Extends the specification.',
    ),
})

/** Session attributes of one mapping. */
export const mappingFields = () => ({
  ...attributeFields(),
  externalId: externalIdField(
    'External id that the trust policy of this role asks for, instead of that of the config.',
  ),
  sessionPolicy: sessionPolicy()
    .optional()
    .describe('Session policy that narrows the role, instead of that of the config. Extends the specification.'),
  policyArns: policyArns().describe(
    'Managed session policies that narrow the role, instead of those of the config. Extends the specification.',
  ),
})

export type SessionPolicy = z.output<ReturnType<typeof sessionPolicy>>

const HOW =
  'AssumeRoleWithWebIdentity takes none from the proxy: let the identity provider put them into its tokens (claims "https://aws.amazon.com/tags" and "https://aws.amazon.com/source_identity"), or use "source: { type: ambient }" or "role"'

/** Attributes that only `AssumeRole` accepts, and their alternatives. */
const OF_ASSUME_ROLE = {
  sessionTags: HOW,
  sourceIdentity: HOW,
  externalId:
    'needs roles that are assumed with a source of type ambient or role; AssumeRoleWithWebIdentity takes none',
} as const

/** Tags, source identity and external ID need a source whose STS operation accepts them. */
export const attributeRules = (
  isForRoles: (value: Readonly<Record<string, unknown>>) => boolean,
  isForRolesCel: string,
): readonly Rule[] =>
  (['sessionTags', 'sourceIdentity', 'externalId'] as const).flatMap((name): Rule[] => [
    {
      message: `"${name}": ${OF_ASSUME_ROLE[name]}`,
      at: name,
      holds: (value) => value[name] === undefined || isForRoles(value),
      cel: `!has(self.${name}) || ${isForRolesCel}`,
    },
    {
      message: `"${name}" of "roleMappings": ${OF_ASSUME_ROLE[name]}`,
      at: 'roleMappings',
      holds: (value) =>
        isForRoles(value) ||
        !Array.isArray(value.roleMappings) ||
        !value.roleMappings.some((mapping) => isRecord(mapping) && mapping[name] !== undefined),
      cel: `${isForRolesCel} || !has(self.roleMappings) || !self.roleMappings.exists(m, has(m.${name}))`,
    },
  ])
