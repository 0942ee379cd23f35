import type { CloudSts } from '../src/resources/index.ts'

/** Accounts of docs/aws.md, and one more with roles. */
export const [OURS, THEIRS, MORE] = ['111111111111', '222222222222', '333333333333'] as const
export const ROLE = (account: string, name: string) => `arn:aws:iam::${account}:role/${name}`

export interface TrustRow {
  readonly what: string
  readonly spec: Partial<CloudSts>
  readonly claims?: Readonly<Record<string, string>>
  /** The role that the caller gets, or what the refusal says: code, then detail. */
  readonly expect: string | RegExp
  /** Objects that the session may write, and may not. */
  readonly writes?: Readonly<Record<string, boolean>>
  /** Token of the caller; opaque when absent. */
  readonly token?: string
}

/** Claims of the service account's token. */
export const POD = {
  iss: 'https://oidc.eks.eu-central-1.amazonaws.com/id/EXAMPLE',
  aud: 'sts.amazonaws.com',
  sub: 'system:serviceaccount:mcp:tools',
}
const CALLER = { iss: 'https://login.example.com', aud: 'mcp', sub: 'alice' }
export const tokenOf = (claims: object): string =>
  [{ alg: 'RS256' }, claims, 'signature']
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')

const POD_SOURCE = { type: 'ambient' as const, chain: ['webIdentityFile' as const] }
const HUB_SOURCE = (externalId?: string) => ({
  type: 'role' as const,
  through: { roleArn: ROLE(OURS, 'mcp-hub'), source: POD_SOURCE, ...(externalId === undefined ? {} : { externalId }) },
})
export const FROM_POD = { source: POD_SOURCE, fallbackRoleArn: ROLE(THEIRS, 'mcp-irsa') }
const TEAM = [{ key: 'Team', value: 'claims.team' }]
const template = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::data/{claims.team}/public/*"}]}`
const MANY_ROLES = {
  matcher: 'true',
  roleArnTemplate: 'arn:aws:iam::{claims.account}:role/mcp-{claims.team}',
  allowedAccounts: [THEIRS, MORE, OURS],
}
const MANY = { source: POD_SOURCE, roleMappings: [MANY_ROLES] }
const denied = (action: string) => new RegExp(`^role_denied .*sts:${action} is denied by`)

/** Callers, and what IAM makes of them. */
// prettier-ignore
export const ROWS: readonly TrustRow[] = [
  { what: 'the JWT of the caller', spec: { fallbackRoleArn: ROLE(THEIRS, 'mcp-jwt') }, token: tokenOf(CALLER), expect: 'mcp-jwt' },
  { what: 'a JWT for others', spec: { fallbackRoleArn: ROLE(THEIRS, 'mcp-jwt') }, token: tokenOf({ ...CALLER, aud: 'x' }), expect: /^role_denied / },
  { what: 'IRSA, and a role per caller', spec: FROM_POD, expect: 'mcp-irsa' },
  { what: 'a role beyond the policy of who assumes', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'other') }, expect: denied('AssumeRole') },
  { what: 'a role that trusts another principal', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-jwt') }, expect: denied('AssumeRole') },
  { what: 'a role that is not there', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-missing') }, expect: denied('AssumeRole') },
  { what: 'tags where the role allows none', spec: { ...FROM_POD, sessionTags: TEAM }, claims: { team: 'search' }, expect: denied('TagSession') },
  { what: 'pod identity: tags where the role allows them', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-tagged'), sessionTags: TEAM }, claims: { team: 'search' }, expect: 'mcp-tagged', writes: { 'search/a': true, 'payments/a': false } },
  { what: 'the tag of another team', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-tagged'), sessionTags: TEAM }, claims: { team: 'payments' }, expect: 'mcp-tagged', writes: { 'search/a': false, 'payments/a': true } },
  { what: 'no tag where objects go by it', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-tagged') }, expect: 'mcp-tagged', writes: { 'search/a': false } },
  { what: 'a tag that the role asks for', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-team'), sessionTags: TEAM }, claims: { team: 'search' }, expect: 'mcp-team' },
  { what: 'without the tag that the role asks for', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-team') }, expect: denied('AssumeRole') },
  {
    what: 'a session policy by template', claims: { team: 'search' }, expect: 'mcp-tagged', writes: { 'search/public/a': true, 'search/a': false },
    spec: { source: POD_SOURCE, roleMappings: [{ matcher: 'true', roleArn: ROLE(THEIRS, 'mcp-tagged'), sessionTags: TEAM, sessionPolicy: { template } }] },
  },
  { what: 'a managed policy that is not there', spec: { ...FROM_POD, policyArns: [`arn:aws:iam::${THEIRS}:policy/missing`] }, expect: /^config_error .*ValidationError/ },
  { what: 'many accounts by template', spec: { ...MANY, externalId: 'mcp-extauth' }, claims: { account: MORE, team: 'many' }, expect: 'mcp-many' },
  { what: 'the same in another account', spec: { ...MANY, externalId: 'mcp-extauth' }, claims: { account: THEIRS, team: 'many' }, expect: 'mcp-many' },
  { what: 'an account without the role', spec: { ...MANY, externalId: 'mcp-extauth' }, claims: { account: OURS, team: 'many' }, expect: denied('AssumeRole') },
  { what: 'a wrong external id', spec: { ...MANY, externalId: 'others' }, claims: { account: MORE, team: 'many' }, expect: denied('AssumeRole') },
  { what: 'no external id', spec: MANY, claims: { account: MORE, team: 'many' }, expect: denied('AssumeRole') },
  { what: 'the external id of a mapping', spec: { ...MANY, externalId: 'others', roleMappings: [{ ...MANY_ROLES, externalId: 'mcp-extauth' }] }, claims: { account: MORE, team: 'many' }, expect: 'mcp-many' },
  { what: 'through a hub', spec: { source: HUB_SOURCE(), fallbackRoleArn: ROLE(THEIRS, 'mcp-behind') }, expect: 'mcp-behind' },
  { what: 'past the hub', spec: { ...FROM_POD, fallbackRoleArn: ROLE(THEIRS, 'mcp-behind') }, expect: denied('AssumeRole') },
  { what: 'a hub that asks for an external id', spec: { source: { ...HUB_SOURCE('mcp-extauth'), through: { ...HUB_SOURCE('mcp-extauth').through, roleArn: ROLE(OURS, 'mcp-hub-id') } }, fallbackRoleArn: ROLE(THEIRS, 'mcp-hubbed') }, expect: 'mcp-hubbed' },
  { what: 'a hub with a wrong external id', spec: { source: { ...HUB_SOURCE('others'), through: { ...HUB_SOURCE('others').through, roleArn: ROLE(OURS, 'mcp-hub-id') } }, fallbackRoleArn: ROLE(THEIRS, 'mcp-hubbed') }, expect: /^config_error .*sts:AssumeRole is denied by/ },
]
