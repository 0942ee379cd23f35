import { z } from 'zod'
import { goesWithType, isRecord, type Rule, withRules } from '../../fields/index.ts'
import { roleArn } from './role-arn.ts'

/** Sources of the process's own AWS identity, in the order of the AWS SDKs. */
export const AMBIENT_SOURCES = [
  'environment',
  'webIdentityFile',
  'podIdentity',
  'container',
  'instance',
  'profile',
] as const
export type AmbientName = (typeof AMBIENT_SOURCES)[number]
/** The default: all but `profile`, which belongs to a developer. */
const USUAL: readonly AmbientName[] = AMBIENT_SOURCES.slice(0, -1)
/** These may contain keys of an IAM user: assuming a role with them is not role chaining. */
const LONG_TERM: ReadonlySet<string> = new Set(['environment', 'profile'])
/** Longest session in seconds for a role assumed by a role (AWS STS, role chaining). */
const LONGEST_CHAINED = 3600

const ambientFields = () => ({
  chain: z
    .array(z.enum(AMBIENT_SOURCES))
    .min(1)
    .max(AMBIENT_SOURCES.length)
    .optional()
    .describe('Only with type ambient: where the identity may come from, in this order. Default: all but profile.'),
  profile: z
    .string()
    .min(1)
    .max(256)
    .regex(/^[^\s[\]]+$/, { error: 'expected the name of a profile' })
    .optional()
    .describe(
      'Profile of the AWS configuration files, where the chain has profile; AWS_PROFILE or default when absent.',
    ),
})

/** The property is optional and allowed with one type only. */
const onlyWith = (property: string, type: string): Rule => ({
  message: `"${property}" must be absent unless type is "${type}"`,
  at: property,
  holds: (value) => value[property] === undefined || value.type === type || typeof value.type !== 'string',
  cel: `!has(self.${property}) || self.type == '${type}'`,
  json: { anyOf: [{ not: { required: [property] } }, { properties: { type: { const: type } } }] },
})

const CHAIN_RULES: readonly Rule[] = [
  {
    message: 'expected each place once',
    at: 'chain',
    holds: ({ chain }) => !Array.isArray(chain) || new Set(chain).size === chain.length,
    cel: '!has(self.chain) || self.chain.all(a, self.chain.exists_one(b, a == b))',
    json: { properties: { chain: { uniqueItems: true } } },
  },
  {
    message: '"profile" needs "profile" in "chain" as well',
    at: 'profile',
    holds: ({ profile, chain }) => profile === undefined || (Array.isArray(chain) && chain.includes('profile')),
    cel: "!has(self.profile) || (has(self.chain) && 'profile' in self.chain)",
    json: {
      anyOf: [
        { not: { required: ['profile'] } },
        { required: ['chain'], properties: { chain: { contains: { const: 'profile' } } } },
      ],
    },
  },
]

const externalId = () =>
  z
    .string()
    .min(2)
    .max(1224)
    .regex(/^[\w+=,.@:/-]+$/, { error: 'expected letters, digits and _+=,.@:/-' })

/** `cloudSts.externalId`, that of a mapping, and `through.externalId`. */
export const externalIdField = (what = 'External id that the trust policy of the role asks for.') =>
  externalId().optional().describe(`${what} Extends the specification.`)

const through = () =>
  z.strictObject({
    roleArn: roleArn().describe('Role of the first hop; the role that the rules chose is assumed from it.'),
    externalId: externalIdField(),
    source: withRules(
      z.strictObject({ type: z.literal('ambient').describe('The identity of the process.'), ...ambientFields() }),
      CHAIN_RULES,
    ).describe('Whose identity assumes the role of the first hop.'),
  })

const TYPES = ['callerToken', 'ambient', 'role'] as const

/** `cloudSts.source`: the identity that is presented to STS (extends the specification). */
export const stsSource = () =>
  withRules(
    z.strictObject({
      type: z
        .enum(TYPES)
        .describe('The JWT of the caller, the identity of the process, or a role that this one assumes first.'),
      ...ambientFields(),
      signAs: z
        .enum(['service', 'role'])
        .optional()
        .describe(
          'Only with type ambient: sign with the identity of the process as it is, or with roles that it assumes for callers. Default: role where there are roles, else service.',
        ),
      through: through().optional().describe('Only with type role.'),
    }),
    [
      onlyWith('chain', 'ambient'),
      onlyWith('signAs', 'ambient'),
      goesWithType('through', 'role', TYPES),
      ...CHAIN_RULES,
    ],
  )
export type StsSource = z.output<ReturnType<typeof stsSource>>

/** The sources of the process's own identity. */
export interface AmbientSpec {
  readonly chain?: readonly AmbientName[] | undefined
  readonly profile?: string | undefined
}

export const chainOf = ({ chain }: AmbientSpec): readonly AmbientName[] => chain ?? USUAL

type WithSource = {
  readonly source?: StsSource | undefined
  readonly roleMappings?: readonly unknown[] | undefined
  readonly fallbackRoleArn?: string | undefined
}

const hasRoles = ({ roleMappings = [], fallbackRoleArn }: Readonly<Record<string, unknown>>): boolean =>
  fallbackRoleArn !== undefined || (Array.isArray(roleMappings) && roleMappings.length > 0)

/** Whether all requests are signed with the process's own identity, without a role per caller. */
export const signsAsService = (spec: WithSource): boolean =>
  spec.source?.type === 'ambient' && (spec.source.signAs ?? (hasRoles({ ...spec }) ? 'role' : 'service')) === 'service'

/** Whether the caller's own token is presented to STS. */
export const showsCallerToken = ({ source }: Pick<WithSource, 'source'>): boolean =>
  source === undefined || source.type === 'callerToken'

const EITHER_CEL = 'has(self.fallbackRoleArn) || (has(self.roleMappings) && size(self.roleMappings) > 0)'
const ROLES_CEL = `(${EITHER_CEL})`
const SERVICE_CEL = `(has(self.source) && self.source.type == 'ambient' && (has(self.source.signAs) ? self.source.signAs == 'service' : !${ROLES_CEL}))`
const CALLER_CEL = "(!has(self.source) || self.source.type == 'callerToken')"

const isService = (value: Readonly<Record<string, unknown>>): boolean =>
  isRecord(value.source) &&
  value.source.type === 'ambient' &&
  (value.source.signAs ?? (hasRoles(value) ? 'role' : 'service')) === 'service'
const isCallers = ({ source }: Readonly<Record<string, unknown>>): boolean =>
  source === undefined || !isRecord(source) || source.type === 'callerToken'

/** Whether roles are assumed with the process's own identity; `value` may be invalid. */
export const assumesRoles = (value: Readonly<Record<string, unknown>>): boolean =>
  !isCallers(value) && !isService(value)
export const ASSUMES_ROLES_CEL = `!(${CALLER_CEL} || ${SERVICE_CEL})`

/** Rules between the source and other fields of `cloudSts`. */
export const SOURCE_RULES: readonly Rule[] = [
  {
    message: 'expected "fallbackRoleArn" or at least one entry in "roleMappings"',
    holds: (value) => isService(value) || hasRoles(value),
    cel: `${EITHER_CEL} || ${SERVICE_CEL}`,
    json: {
      anyOf: [
        { required: ['fallbackRoleArn'] },
        { required: ['roleMappings'], properties: { roleMappings: { minItems: 1 } } },
        {
          required: ['source'],
          properties: { source: { properties: { type: { const: 'ambient' }, signAs: { const: 'service' } } } },
        },
      ],
    },
  },
  {
    message:
      'with "signAs: service" the identity of the process signs and no role is assumed; expected neither "roleMappings" nor "fallbackRoleArn", or "signAs: role"',
    at: 'source',
    holds: (value) => !isService(value) || !hasRoles(value),
    cel: `!(${SERVICE_CEL} && ${ROLES_CEL})`,
  },
  {
    message:
      '"subjectProviderName" is for "source: { type: callerToken }": with another source no token is shown to STS',
    at: 'subjectProviderName',
    holds: (value) => isCallers(value) || (value.subjectProviderName ?? '') === '',
    cel: `${CALLER_CEL} || !has(self.subjectProviderName) || self.subjectProviderName == ''`,
  },
  ...(['sessionPolicy', 'sessionPolicyTemplate', 'policyArns'] as const).map((name) => ({
    message: `"${name}" narrows a role, and with this source none is assumed`,
    at: name,
    holds: (value: Readonly<Record<string, unknown>>) => value[name] === undefined || !isService(value),
    cel: `!has(self.${name}) || !${SERVICE_CEL}`,
  })),
  {
    message: 'a role that is assumed by a role lasts one hour at most: expected at most 3600 with this source',
    at: 'sessionDuration',
    holds: (value) => !isChained(value.source) || Number(value.sessionDuration ?? 0) <= LONGEST_CHAINED,
    cel: `!has(self.source) || self.sessionDuration <= 3600 || self.source.type == 'callerToken' || (self.source.type == 'ambient' && (!has(self.source.chain) || self.source.chain.exists(c, c == 'environment' || c == 'profile')))`,
  },
]

/** Whether the identity that assumes roles is itself a role. */
function isChained(source: unknown): boolean {
  if (!isRecord(source)) return false
  if (source.type === 'role') return true
  const { type, chain = USUAL } = source
  return type === 'ambient' && Array.isArray(chain) && !chain.some((name: unknown) => LONG_TERM.has(String(name)))
}
