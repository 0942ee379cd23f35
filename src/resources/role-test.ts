import { z } from 'zod'
import { isRecord, metadata, withRules, type Rule, filePath, objectName } from '../fields/index.ts'

/** Reasons from rules and claims why a caller gets no role (decisions §3.5). */
export const ROLE_REFUSALS = [
  'no_role',
  'role_denied',
  'rule_limit',
  'matcher_error',
  'session_name_missing',
  'opaque_token_unsupported',
] as const

/** Exactly one of the two properties is set. */
const oneOf = (a: string, b: string): Rule => ({
  message: `expected either "${a}" or "${b}"`,
  explain: (value) =>
    value[a] === undefined
      ? `missing, expected either "${a}" or "${b}"`
      : `"${a}" and "${b}" are mutually exclusive, expected only one of them`,
  at: b,
  holds: (value) => (value[a] === undefined) !== (value[b] === undefined),
  json: { oneOf: [{ required: [a] }, { required: [b] }] },
})

const expectation = () =>
  withRules(
    z.strictObject({
      role: z
        .string()
        .min(1)
        .max(2048)
        .optional()
        .describe('ARN of the role, as the configuration writes it; `none` when the caller must not get any.'),
      allowed: z.boolean().optional().describe('Whether the rules of the route allow the request of `mcp`.'),
      rule: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe('Name of the rule that decides; `default` where none matches.'),
      reason: z.enum(ROLE_REFUSALS).optional().describe('Why the caller gets no role.'),
      sessionName: z.string().min(1).max(64).optional().describe('The role session name.'),
    }),
    [
      {
        message: 'expected at least one of "role", "reason", "sessionName", "allowed" and "rule"',
        holds: (value) => Object.values(value).some((member) => member !== undefined),
        json: { minProperties: 1 },
      },
      {
        message: 'a caller with a "reason" gets no role, expected "none" or no "role"',
        at: 'role',
        holds: ({ role, reason }) => role === undefined || reason === undefined || role === 'none',
        json: { not: { required: ['role', 'reason'], properties: { role: { not: { const: 'none' } } } } },
      },
    ],
  )

const roleCase = () =>
  withRules(
    z.strictObject({
      name: z
        .string()
        .min(1)
        .max(200)
        .regex(/^[^\r\n]+$/, { error: 'expected a name on one line' })
        .optional()
        .describe('What is expected, in a sentence; in reports.'),
      route: z.string().min(1).max(63).optional().describe('Name of the route, with its `onMatcherError`.'),
      config: objectName()
        .optional()
        .describe('Name of an MCPExternalAuthConfig in the same namespace; no route needed.'),
      claims: z.record(z.string(), z.unknown()).optional().describe('The claims of the caller.'),
      token: filePath('text')
        .optional()
        .describe('File with an access token, in place of claims; its signature is not checked.'),
      mcp: z
        .strictObject({
          method: z.string().min(1).max(200).default('tools/call').describe('JSON-RPC method.'),
          name: z.string().min(1).max(1024).optional().describe('Tool or prompt.'),
          uri: z.string().min(1).max(4096).optional().describe('Resource, or the template of a completion.'),
          args: z.record(z.string(), z.unknown()).optional().describe('Arguments.'),
          annotations: z.record(z.string(), z.boolean()).optional().describe('Hints of the backend about the tool.'),
        })
        .optional()
        .describe('The request; only with `route`.'),
      format: z
        .enum(['jwt', 'opaque'])
        .default('jwt')
        .describe('Whether the claims are those of a JWT or of an introspected opaque token.'),
      expect: expectation().describe('What the caller must get; what is not named is not compared.'),
    }),
    [
      oneOf('route', 'config'),
      oneOf('claims', 'token'),
      {
        message: 'rules belong to a route, expected "route" with "mcp"',
        at: 'mcp',
        holds: ({ mcp, route }) => mcp === undefined || route !== undefined,
        json: { dependentRequired: { mcp: ['route'] } },
      },
      {
        message: '"allowed" and "rule" are about a request, expected "mcp" with them',
        at: 'expect',
        holds: ({ mcp, expect }) =>
          mcp !== undefined || !isRecord(expect) || (expect.allowed === undefined && expect.rule === undefined),
        json: {
          anyOf: [
            { required: ['mcp'] },
            { properties: { expect: { not: { anyOf: [{ required: ['allowed'] }, { required: ['rule'] }] } } } },
          ],
        },
      },
      {
        message: 'the token determines its format, expected "format" only with "claims"',
        at: 'format',
        holds: ({ format, token }) => token === undefined || format === undefined || format === 'jwt',
        json: { not: { required: ['token', 'format'], properties: { format: { const: 'opaque' } } } },
      },
    ],
  )

/** The resource RoleTest: callers and their expected roles. A file for `extauth test` only, not a cluster resource. */
export const roleTest = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('RoleTest'),
    metadata: metadata(),
    spec: z.strictObject({
      cases: z.array(roleCase()).min(1).max(10_000).describe('Callers and what they must get.'),
    }),
  })

export type RoleTest = z.output<ReturnType<typeof roleTest>>
export type RoleCase = RoleTest['spec']['cases'][number]
