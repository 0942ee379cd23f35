import { z } from 'zod'
import {
  filePath,
  httpUrl,
  int32,
  MAX_INT32,
  secondsBetween,
  exclusive,
  isRecord,
  withRules,
} from '../../fields/index.ts'
import { awsHostMismatches, REGION } from './aws-hosts.ts'
import { partitionOf } from './aws-partitions.ts'
import { requestSelector } from '../authorization.ts'
import { matcherProblem, matcherRemarks, MOST_MAPPINGS } from './matcher-verdicts.ts'
import { ACCOUNT_PLACEHOLDER_CEL, hasAccountPlaceholder, roleArn, roleArnTemplate } from './role-arn.ts'
import { attributeFields, attributeRules, mappingFields, policyArns, sessionPolicyTemplate } from './session-fields.ts'
import { constantProblem } from './session-policy.ts'
import {
  ASSUMES_ROLES_CEL,
  assumesRoles,
  externalIdField,
  showsCallerToken,
  signsAsService,
  SOURCE_RULES,
  stsSource,
} from './sts-source.ts'
import { subjectProviderName } from '../upstream/upstream-provider.ts'
import { named, ORDINARY, type Remark, type TypeRecord } from '../type-record.ts'

/** Part of a signature's credential scope, between slashes. */
const SERVICE = /^[A-Za-z0-9._-]+$/

const roleMapping = () =>
  withRules(
    z.strictObject({
      roleArn: roleArn().optional().describe('Role to assume when this mapping matches.'),
      roleArnTemplate: roleArnTemplate()
        .optional()
        .describe(
          'Role made of claims: each {claims.PATH} becomes the string at that path. Mutually exclusive with roleArn. Extends the specification.',
        ),
      allowedAccounts: z
        .array(
          z
            .string()
            .max(12)
            .regex(/^\d{12}$/, { error: 'expected an account of 12 digits' }),
        )
        .min(1)
        .max(1000)
        .optional()
        .describe(
          'Accounts that a placeholder for the account may name; needed with such a template. Extends the specification.',
        ),
      claim: z
        .string()
        .min(1)
        .max(4096)
        .optional()
        .describe('Value that must be contained in claims[roleClaim]. Mutually exclusive with matcher.'),
      matcher: z
        .string()
        .min(1)
        .max(10_000)
        .optional()
        .describe(
          'CEL expression over claims, and over mcp, actor and route of the request. Mutually exclusive with claim.',
        ),
      ...requestSelector(),
      priority: int32(0, MAX_INT32)
        .optional()
        .describe('Lower is evaluated first; absent is last, in the order of the configuration.'),
      ...mappingFields(),
    }),
    [
      exclusive('roleArn', 'roleArnTemplate'),
      {
        message: 'a role mapping needs "roleArn" or "roleArnTemplate"',
        holds: (value) => value.roleArn !== undefined || value.roleArnTemplate !== undefined,
        cel: 'has(self.roleArn) || has(self.roleArnTemplate)',
        json: { anyOf: [{ required: ['roleArn'] }, { required: ['roleArnTemplate'] }] },
      },
      {
        message: 'expected "allowedAccounts" exactly where "roleArnTemplate" has a placeholder for the account',
        at: 'allowedAccounts',
        holds: ({ roleArnTemplate: template, allowedAccounts }) =>
          (typeof template === 'string' && hasAccountPlaceholder(template)) === (allowedAccounts !== undefined),
        cel: `has(self.allowedAccounts) == (has(self.roleArnTemplate) && ${ACCOUNT_PLACEHOLDER_CEL})`,
        json: {
          anyOf: [
            {
              required: ['roleArnTemplate', 'allowedAccounts'],
              properties: { roleArnTemplate: { pattern: ':iam::\\{' } },
            },
            {
              not: { required: ['allowedAccounts'] },
              properties: { roleArnTemplate: { not: { pattern: ':iam::\\{' } } },
            },
          ],
        },
      },
      exclusive('claim', 'matcher'),
      {
        message: 'a role mapping needs "claim" or "matcher", or the requests that it is for ("tools", …)',
        holds: (value) => CONDITIONS.some((name) => value[name] !== undefined),
        cel: CONDITIONS.map((name) => `has(self.${name})`).join(' || '),
        json: { anyOf: CONDITIONS.map((name) => ({ required: [name] })) },
      },
    ],
  )

/** A mapping needs at least one of these conditions. */
const CONDITIONS = ['claim', 'matcher', 'tools', 'prompts', 'resources', 'methods'] as const

/** `spec.cloudSts` (and its alias `spec.awsSts`, whose `service` defaults to `aws-mcp`). */
export const cloudSts = (defaultService: 'cloud-mcp' | 'aws-mcp') =>
  withRules(
    z.strictObject({
      region: z
        .string()
        .min(1)
        .max(64)
        .regex(REGION, { error: 'expected a region such as "eu-central-1"' })
        .describe('Region of the STS endpoint and of the service.'),
      fallbackRoleArn: roleArn().optional().describe('Role to assume when no mapping matches.'),
      roleClaim: z.string().min(1).max(256).default('groups').describe('Claim evaluated for role mapping.'),
      onGroupsOverage: z
        .enum(['deny', 'fallback'])
        .optional()
        .describe(
          'When a mapping reads a claim that the issuer left out of the token (_claim_names, as for groups of Entra ID): 403 (deny, the default), or the mapping does not match (fallback). Extends the specification.',
        ),
      roleMappings: z
        .array(roleMapping())
        .max(MOST_MAPPINGS)
        .superRefine(usableMatchers, { when: () => true })
        .optional()
        .describe('Role selection by claims; the first match wins.'),
      service: z
        .string()
        .min(1)
        .max(64)
        .regex(SERVICE, { error: 'expected the name of a service to sign for, such as "execute-api"' })
        .default(defaultService)
        .describe('Service name used for request signing.'),
      sessionDuration: secondsBetween(900, 43_200).prefault(3600).describe('Seconds.'),
      sessionNameClaim: z
        .string()
        .min(1)
        .max(256)
        .default('sub')
        .describe('Claim used as the role session name; a claim of that name first, else a path with dots.'),
      source: stsSource()
        .optional()
        .describe('Whose identity goes to STS; the JWT of the caller when absent. Extends the specification.'),
      externalId: externalIdField(),
      subjectProviderName: subjectProviderName().describe(
        'Upstream provider whose ID token is the web identity; the token of the caller when empty. Extends the specification.',
      ),
      sessionPolicy: z
        .string()
        .min(1)
        .max(2048)
        .optional()
        .describe('Inline session policy (JSON) that narrows the role. Extends the specification.'),
      sessionPolicyTemplate: sessionPolicyTemplate(),
      policyArns: policyArns().describe('Managed session policies that narrow the role. Extends the specification.'),
      ...attributeFields(),
      stsEndpoint: httpUrl()
        .optional()
        .describe('STS endpoint instead of the one of the region. Extends the specification.'),
      fips: z.boolean().optional().describe('STS endpoint with FIPS 140. Extends the specification.'),
      dualStack: z.boolean().optional().describe('STS endpoint with IPv4 and IPv6. Extends the specification.'),
      caCertPath: filePath('certificates')
        .optional()
        .describe('CA certificates that replace the system roots for STS. Extends the specification.'),
    }),
    [
      ...SOURCE_RULES,
      ...(['fips', 'dualStack'] as const).map((name) => ({
        message: `"${name}" chooses the endpoint of the region, and "stsEndpoint" names another; expected only one of them`,
        at: name,
        holds: (value: Readonly<Record<string, unknown>>) => value[name] !== true || value.stsEndpoint === undefined,
        cel: `!has(self.${name}) || !self.${name} || !has(self.stsEndpoint)`,
        json: { not: { required: [name, 'stsEndpoint'], properties: { [name]: { const: true } } } },
      })),
      ...attributeRules(assumesRoles, ASSUMES_ROLES_CEL),
      exclusive('sessionPolicy', 'sessionPolicyTemplate'),
      {
        message: 'expected a policy as JSON',
        at: 'sessionPolicy',
        explain: ({ sessionPolicy }) => constantProblem(sessionPolicy) ?? '',
        holds: ({ sessionPolicy }) => typeof sessionPolicy !== 'string' || constantProblem(sessionPolicy) === undefined,
      },
    ],
  )

/** Compiles the matchers, except those of a list that is too long: it is rejected without that cost. */
function usableMatchers(mappings: unknown, context: z.core.$RefinementCtx): void {
  if (!Array.isArray(mappings) || mappings.length > MOST_MAPPINGS) return
  for (const [index, mapping] of mappings.entries()) {
    const matcher: unknown = isRecord(mapping) ? mapping.matcher : undefined
    if (typeof matcher !== 'string' || matcher === '') continue
    const message = matcherProblem(matcher)
    if (message !== undefined) context.addIssue({ code: 'custom', message, path: [index, 'matcher'] })
  }
}

/** `spec.cloudSts` with its defaults. */
export type CloudSts = z.output<ReturnType<typeof cloudSts>>
/** An entry of `roleMappings`. */
export type RoleMapping = NonNullable<CloudSts['roleMappings']>[number]

export const cloudStsRecord = {
  ...ORDINARY,
  ...named(() => cloudSts('cloud-mcp')),
  summary: 'Only with type cloudSts.',
  aliases: {
    awsSts: {
      schema: () => cloudSts('aws-mcp'),
      summary: 'Only with type awsSts, the alias of cloudSts. Extends the specification.',
    },
  },
  runsOn: 'route',
  credentialOf: (spec) => (signsAsService(spec) ? 'proxy' : 'caller'),
  checkProbe: (spec) => (signsAsService(spec) ? 'credential' : 'role'),
  init: { secrets: {}, callersHave: 'token' },
  urls: ({ stsEndpoint, caCertPath }) =>
    stsEndpoint === undefined
      ? []
      : [{ path: ['stsEndpoint'], url: stsEndpoint, insecureAllowHttp: undefined, caCertPath }],
  cacheKey: () => ({}),
  sets: ({ region, service }) => [
    { name: 'authorization', shown: `AWS4-HMAC-SHA256 (${region}/${service})` },
    { name: 'x-amz-date' },
    { name: 'x-amz-security-token' },
    { name: 'x-amz-content-sha256' },
  ],
  upstreamToken: ({ subjectProviderName: provider, source }) =>
    showsCallerToken({ source })
      ? {
          field: 'subjectProviderName',
          provider,
          kind: 'id_token',
          ownTokenDoes: true,
          source: 'login or connection',
        }
      : undefined,
  signsBody: true,
  remarks: (spec) => [...arnsElsewhere(spec), ...doubtfulMatchers(spec)],
  remarksOnTarget: ({ service, region }, hostname) => awsHostMismatches(hostname, { service, region }),
} satisfies TypeRecord<CloudSts>

/** Warnings about valid matchers that are probably mistakes. */
const doubtfulMatchers = ({ roleMappings = [] }: CloudSts): Remark[] =>
  roleMappings.flatMap(({ matcher }, index) =>
    matcher === undefined
      ? []
      : matcherRemarks(matcher).map((message) => ({ path: ['roleMappings', index, 'matcher'], message })),
  )

/** Warnings about roles and policies of another partition than the region's. */
function arnsElsewhere({
  region,
  fallbackRoleArn,
  roleMappings = [],
  source,
  policyArns: policyArnsOfAll,
}: CloudSts): Remark[] {
  const arns: (readonly [Remark['path'], string])[] = roleMappings.map(
    ({ roleArn: arn, roleArnTemplate: template = '' }, index) =>
      arn === undefined
        ? [['roleMappings', index, 'roleArnTemplate'], template]
        : [['roleMappings', index, 'roleArn'], arn],
  )
  if (fallbackRoleArn !== undefined) arns.push([['fallbackRoleArn'], fallbackRoleArn])
  if (source?.through !== undefined) arns.push([['source', 'through', 'roleArn'], source.through.roleArn])
  arns.push(
    ...policiesAt(['policyArns'], policyArnsOfAll),
    ...roleMappings.flatMap(({ policyArns: own }, index) => policiesAt(['roleMappings', index, 'policyArns'], own)),
  )
  const expected = partitionOf(region)
  return arns
    .filter(([, arn]) => arn.split(':')[1]?.replace(/^cloud/, 'aws') !== expected)
    .map(([path]) => ({
      path,
      message: `an ARN of another partition than the region "${region}", which is in "${expected}"`,
    }))
}

const policiesAt = (path: Remark['path'], arns: readonly string[] = []): [Remark['path'], string][] =>
  arns.map((arn, index) => [[...path, index], arn])
