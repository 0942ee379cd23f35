import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, asFailure, type AwsCredential, monotonicNow, Secret } from '../src/core/index.ts'
import { createCloudStsSource, identityFor } from '../src/obtain/index.ts'
import { freePort } from '../lab/free-port.ts'
import { send, signed, untilListening } from './moto.ts'
import type { Python } from './python.ts'
import { callerWith, environmentOnly, portsFor, REGION, specOf } from './sources.ts'
import { FROM_POD, MORE, OURS, POD, ROLE, ROWS, THEIRS, tokenOf, type TrustRow } from './trust-rows.ts'

/**
 * An independent IAM and STS (MiniStack), which evaluates trust policies, policies of who assumes, external ids, tags
 * and session policies, and whose S3 goes by them. The trust policies are those of docs/aws.md, word by word. Gives what was
 * not as it should be, and how many rows there were.
 */
export async function askTrust(python: Python): Promise<{ readonly wrong: readonly string[]; readonly rows: number }> {
  const port = await freePort()
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-trust-'))
  const server = spawn(path.join(python.scripts, 'ministack'), [], {
    cwd: directory,
    stdio: 'ignore',
    env: { ...process.env, AUTH: 'true', GATEWAY_PORT: String(port), BIND_HOST: '127.0.0.1', PERSIST_STATE: '0' },
  })
  const before = { ...process.env }
  try {
    await untilListening(port, '/_ministack/health')
    await arrange(port)
    const tokenFile = path.join(directory, 'token')
    writeFileSync(tokenFile, tokenOf(POD))
    const env = { AWS_REGION: REGION, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: ROLE(OURS, 'mcp-extauth') }
    environmentOnly(env)
    const wrong: string[] = []
    for (const row of ROWS) wrong.push(...(await problemsOf(row, env, port)))
    writeFileSync(tokenFile, tokenOf({ ...POD, sub: 'system:serviceaccount:other:pod' }))
    const other = { what: 'another service account', spec: FROM_POD, expect: /^config_error .*AccessDenied/ }
    wrong.push(...(await problemsOf(other, env, port)))
    return { wrong, rows: ROWS.length + 1 }
  } finally {
    environmentOnly({})
    Object.assign(process.env, before)
    server.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The problem of a row with an unexpected result. */
async function problemsOf(
  row: TrustRow,
  env: Readonly<Record<string, string>>,
  port: number,
): Promise<readonly string[]> {
  const { what, claims = {}, expect, writes = {}, token } = row
  const ports = portsFor(env, `http://127.0.0.1:${port}`)
  const spec = specOf(row.spec)
  const source = createCloudStsSource({ name: 'a', namespace: 'default', spec }, ports)
  const caller = callerWith({ sub: 'alice', ...claims }, token === undefined ? 'opaque' : 'jwt')
  try {
    const shown = new Secret(token ?? 'opaque')
    const { credential } = await source.fetch(caller, source.plan(caller), after(monotonicNow(), 10_000), shown)
    const keys = credential as AwsCredential
    const who = await identityFor(spec, { type: 'ambient' }, ports).who(keys)
    const wrong = who.endsWith(`:assumed-role/${String(expect)}/alice`) ? [] : [`${what}: it is ${who}`]
    for (const [object, isAllowed] of Object.entries(writes)) {
      const { status, body } = await send(port, signed(port, 'PUT', `/data/${object}`, 'x', keys), 'x')
      if (status !== (isAllowed ? 200 : 403))
        wrong.push(`${what}: writing ${object} is ${status}: ${body.slice(0, 300)}`)
    }
    return wrong
  } catch (error) {
    const { code, detail = '' } = asFailure(error)
    const result = `${code} ${detail}`
    return expect instanceof RegExp && expect.test(result) ? [] : [`${what}: ${result}`]
  } finally {
    await source.close?.()
    await ports.identities.release()
  }
}

/** The policies of docs/aws.md below a heading, as they stand there. */
function policiesBelow(heading: string): readonly string[] {
  const text = readFileSync(path.join(import.meta.dirname, '..', 'docs', 'aws.md'), 'utf8')
  const section = text.split(/^### /m).find((each) => each.startsWith(heading)) ?? ''
  return [...section.matchAll(/^```json\n([^]*?)^```$/gm)].map(([, json = '']) => json)
}

const allow = (Action: string, Resource: string): string =>
  JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource }] })

/** Roles with the policies of the page, in three accounts, and a bucket. */
async function arrange(port: number): Promise<void> {
  const [jwt = ''] = policiesBelow('1.')
  const [ofPod = '', mayAssume = '', ofProxy = ''] = policiesBelow('2.')
  const [, tagged = ''] = policiesBelow('3.')
  const [many = ''] = policiesBelow('4.')
  const [behind = ''] = policiesBelow('5.')
  const Statement = ['search', 'payments'].map((team) => ({
    Effect: 'Allow',
    Action: 's3:*',
    Resource: `arn:aws:s3:::data/${team}/*`,
    Condition: { StringEquals: { 'aws:PrincipalTag/Team': team } },
  }))
  const teams = JSON.stringify({ Version: '2012-10-17', Statement })
  const asked = tagged.replace('"Action"', '"Condition": {"StringLike": {"aws:RequestTag/Team": "*"}}, "Action"')
  const ofHub = ofProxy.replace('mcp-extauth', 'mcp-hub-id')
  const roles: readonly (readonly [account: string, name: string, trust: string, policy?: string])[] = [
    [OURS, 'mcp-extauth', ofPod, mayAssume],
    [OURS, 'mcp-hub', ofProxy, mayAssume],
    [OURS, 'mcp-hub-id', many, mayAssume],
    [THEIRS, 'mcp-jwt', jwt],
    [THEIRS, 'mcp-irsa', ofProxy],
    [THEIRS, 'other', ofProxy],
    [THEIRS, 'mcp-tagged', tagged, teams],
    [THEIRS, 'mcp-team', asked],
    [THEIRS, 'mcp-many', many],
    [MORE, 'mcp-many', many],
    [THEIRS, 'mcp-behind', behind],
    [THEIRS, 'mcp-hubbed', ofHub],
  ]
  for (const [account, RoleName, AssumeRolePolicyDocument, policy] of roles) {
    await iam(port, account, { Action: 'CreateRole', RoleName, AssumeRolePolicyDocument })
    if (policy !== undefined)
      await iam(port, account, { Action: 'PutRolePolicy', RoleName, PolicyName: 'own', PolicyDocument: policy })
  }
  // The page has one account with roles, and no hub that is ours to assume.
  for (const [name, resource] of [
    ['hubs', ROLE(OURS, 'mcp-hub*')],
    ['more', ROLE(MORE, 'mcp-*')],
  ] as const)
    await iam(port, OURS, {
      Action: 'PutRolePolicy',
      RoleName: 'mcp-extauth',
      PolicyName: name,
      PolicyDocument: allow('sts:*', resource),
    })
  const made = await send(port, signed(port, 'PUT', '/data', '', root(THEIRS, 's3')), '')
  if (made.status !== 200) throw new Error(`MiniStack makes no bucket: ${made.status}`)
}

/** The root of an account, as MiniStack knows it. */
const root = (account: string, service: string): AwsCredential => ({
  kind: 'aws',
  accessKeyId: account,
  secretAccessKey: new Secret('test'),
  sessionToken: undefined,
  region: REGION,
  service,
  signing: { day: '', key: undefined },
})

async function iam(port: number, account: string, call: Readonly<Record<string, string>>): Promise<void> {
  const body = new URLSearchParams({ ...call, Version: '2010-05-08' }).toString()
  const { status, body: answer } = await send(port, signed(port, 'POST', '/', body, root(account, 'iam'), true), body)
  if (status !== 200) throw new Error(`MiniStack answers ${call['Action']} with ${status}: ${answer.slice(0, 300)}`)
}
